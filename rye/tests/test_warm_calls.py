"""Calls of prepared processes: they see what a cold call sees, and nothing of an earlier one."""

from __future__ import annotations

import asyncio
import errno
import json
import random
import signal
import venv
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from processes import is_alive
from rye.executor.inspection import inspect_chain
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.result import ExecutionResult
from rye_project import Project

pytestmark = pytest.mark.anyio

HEAD = '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'
PRIVATE = "import os, tempfile\nPERMISSIONS = {'write': ['tmp']}\n"


class Warm:
    """An executor that prepares each tool with its first call."""

    def __init__(self, project: Project, executor: PrimitiveExecutor) -> None:
        self.project = project
        self.executor = executor

    async def prepared(self, name: str, source: str) -> None:
        """Add a tool, call it once, and wait until it is prepared, or is found to be unfit."""
        self.project.tool(f"{name}.py", HEAD + source)
        await self.get_warm(name)

    async def get_warm(self, name: str) -> None:
        """Call a tool three times: its modules are compiled after the second call."""
        for _ in range(3):
            await self.executor.execute(name, use_lockfile=False)
            await self.executor._warmth.pool.settled()

    async def call(self, name: str, **parameters: Any) -> Any:
        """The data of a call that must be a warm one."""
        result = await self.result(name, **parameters)
        assert result.success, result.error
        assert result.metadata.get("warm") is True, result.metadata
        return result.data

    async def result(self, name: str, **parameters: Any) -> ExecutionResult:
        return await self.executor.execute(name, parameters)

    def process_of(self, tool: str) -> psutil.Process:
        """The prepared process of a tool."""
        entries = self.executor._warmth.pool._entries.values()
        process = next(one.process for one in entries if one.tool == tool)
        assert process is not None
        return psutil.Process(json.loads(process.report)["pid"])


@pytest.fixture
async def warm(tmp_path: Path) -> AsyncIterator[Warm]:
    """All tools are prepared at once."""
    project = Project(tmp_path, shipped_system=True)
    async with PrimitiveExecutor(context=project.context, warm=lambda _: True) as executor:
        yield Warm(project, executor)


async def test_a_call_sees_nothing_of_an_earlier_one(warm: Warm) -> None:
    await warm.prepared(
        "state",
        "import os, random, sys, threading\n"
        "SEEN = []\n"
        "def main(value=0):\n"
        "    found = [len(SEEN), os.getcwd(), os.environ.get('LEFT'), os.umask(0o027)]\n"
        "    SEEN.append(value); os.environ['LEFT'] = 'x'; os.chdir('/'); sys.argv.append('x')\n"
        "    threading.Thread(target=print).start()\n"
        "    return [*found, len(sys.argv), random.random()]\n",
    )
    first, second = await warm.call("state", value=1), await warm.call("state", value=2)
    assert first[:-1] == second[:-1]
    assert first[0] == 0
    assert first[1] == str(warm.project.path)
    assert first[2] is None
    assert first[-1] != second[-1]


async def test_what_the_import_changes_of_its_surroundings_is_there_in_a_call(warm: Warm) -> None:
    await warm.prepared(
        "settings",
        "import os\n"
        "os.environ['ADDED'] = 'x'; os.environ['PATH'] += '!'; del os.environ['HOME']\n"
        "os.chdir('/'); os.umask(0o077)\n"
        "def main():\n"
        "    found = [os.environ.get(name) for name in ('ADDED', 'PATH', 'HOME')]\n"
        "    return [*found, os.getcwd(), os.umask(0), 'LILUX_PREPARED' in os.environ]\n",
    )
    changed = await warm.call("settings")
    assert changed == ["x", changed[1], None, "/", 0o077, False]
    assert changed[1].endswith("!")
    assert not changed[1].endswith("!!")
    warm.executor._warmth._enabled = False
    assert (await warm.result("settings")).data == changed


async def test_generators_have_another_state_in_each_call_unless_the_tool_chose_it(
    warm: Warm,
) -> None:
    await warm.prepared(
        "dice",
        "import random\n"
        "OWN, CHOSEN = random.Random(), random.Random(1)\n"
        "def main():\n"
        "    return [random.random(), OWN.random(), CHOSEN.random()]\n",
    )
    first, second = await warm.call("dice"), await warm.call("dice")
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert first[2] == second[2]
    await warm.prepared(
        "seeded", "import random\nrandom.seed(7)\ndef main():\n    return random.random()\n"
    )
    expected = random.Random(7).random()  # noqa: S311 - what the tool has to return
    assert [await warm.call("seeded"), await warm.call("seeded")] == [expected, expected]


async def test_a_module_of_the_project_that_was_edited_is_loaded_again(warm: Warm) -> None:
    """As in a project that is installed as editable: its folder does not change with the file."""
    project = warm.project.path
    venv.create(project / ".venv", symlinks=True)
    package = project / "src" / "mine"
    package.mkdir(parents=True)
    module = package / "words.py"
    module.write_text("WORD = 'old'\n")
    packages = next((project / ".venv" / "lib").glob("python*/site-packages"))
    (packages / "mine.pth").write_text(f"{project / 'src'}\n")
    await warm.prepared("edited", "from mine.words import WORD\ndef main():\n    return WORD\n")
    assert await warm.call("edited") == "old"
    module.write_text("WORD = 'newer'\n")
    result = await warm.result("edited")
    assert (result.data, "warm" in result.metadata) == ("newer", False)
    await warm.executor._warmth.pool.settled()
    assert await warm.call("edited") == "newer"


async def test_a_warm_call_has_what_a_cold_one_has(warm: Warm) -> None:
    source = (
        "import os, sys, __main__\n"
        "def main(**given):\n"
        "    env = {k: v for k, v in os.environ.items() if 'PWD' not in k}\n"
        "    print('to stderr')\n"
        "    return [given, env, sys.argv, os.getcwd(), __file__, __name__, sys.flags.isolated,\n"
        "            sys.path, os.getpgid(0) == os.getpid(), __main__.__file__]\n"
    )
    warm.project.tool("same.py", HEAD + source)
    await warm.get_warm("same")
    warm.executor._warmth._enabled = False
    cold = await warm.result("same", text="é", number=1)
    assert "warm" not in cold.metadata
    warm.executor._warmth._enabled = True
    result = await warm.result("same", text="é", number=1)
    assert result.metadata["warm"] is True
    assert result.data == cold.data
    assert result.metadata["stderr"] == cold.metadata["stderr"] == "to stderr\n"


async def test_the_end_of_a_warm_call_is_that_of_a_cold_one(warm: Warm, tmp_path: Path) -> None:
    await warm.prepared(
        "ends",
        "import atexit, sys, threading, time\n"
        "FILE = None\n"
        "def main(how='', path=''):\n"
        "    global FILE\n"
        "    if how == 'raise': raise KeyError('missing')\n"
        "    if how == 'exit': sys.exit(7)\n"
        "    if how == 'message': sys.exit('no, thanks')\n"
        "    if how == 'buffered': FILE = open(path, 'w'); FILE.write('kept')\n"
        "    if how == 'atexit': atexit.register(lambda: open(path, 'w').write('kept'))\n"
        "    if how == 'thread':\n"
        "        def late(): time.sleep(0.05); open(path, 'w').write('kept')\n"
        "        threading.Thread(target=late).start()\n"
        "    return how\n",
    )
    raised = await warm.result("ends", how="raise")
    assert raised.error == "'ends' ended with exit code 1: KeyError: 'missing'"
    assert "rye_run_tool" not in raised.data["stderr"]
    assert "rye_prepared" not in raised.data["stderr"]
    assert (await warm.result("ends", how="exit")).metadata["return_code"] == 7
    message = await warm.result("ends", how="message")
    assert message.error == "'ends' ended with exit code 1: no, thanks"
    for how in ("buffered", "atexit", "thread"):
        path = tmp_path / how
        assert await warm.call("ends", how=how, path=str(path)) == how
        assert path.read_text() == "kept", how


async def test_a_warm_call_that_hangs_is_ended_with_an_autopsy(warm: Warm) -> None:
    source = "import time\nCONFIG = {'autopsy_budget': 10}\n"
    await warm.prepared("hang", f"{source}def main(s=0):\n    time.sleep(s)\n    return 1\n")
    result = await warm.executor.execute("hang", {"s": 600}, timeout=1)
    assert result.metadata["error_type"] == "ToolTimedOut"
    assert result.metadata["warm"] is True
    assert "in main" in str(result.metadata["autopsy"]["processes"][0]["stack"])
    assert await warm.call("hang") == 1


async def test_many_warm_calls_at_once_get_their_own_answers(warm: Warm) -> None:
    await warm.prepared("echo", "def main(n=0):\n    return n\n")
    calls = [warm.call("echo", n=number) for number in range(32)]
    assert await asyncio.gather(*calls) == list(range(32))


async def test_a_changed_tool_is_not_answered_by_the_old_process(warm: Warm) -> None:
    await warm.prepared("versions", "def main():\n    return 'old'\n")
    assert await warm.call("versions") == "old"
    old = warm.process_of("versions")
    warm.project.tool("versions.py", HEAD + "def main():\n    return 'new'\n")
    result = await warm.executor.execute("versions", use_lockfile=False)
    assert (result.data, "warm" in result.metadata) == ("new", False)
    await warm.get_warm("versions")
    assert not is_alive(old)
    result = await warm.executor.execute("versions", use_lockfile=False)
    assert (result.data, result.metadata["warm"]) == ("new", True)


async def test_a_new_value_in_the_environment_needs_another_process(warm: Warm) -> None:
    source = "import os\nENV_CONFIG = {'env': {'TOKEN': '${TOKEN}'}}\n"
    source += "VALUE = os.environ.get('TOKEN')\ndef main():\n    return VALUE\n"
    warm.project.tool("token.py", HEAD + source)
    dotenv = warm.project.path / ".env"
    dotenv.write_text("TOKEN=one\n")
    async with PrimitiveExecutor(context=warm.project.context, warm=lambda _: True) as executor:
        other = Warm(warm.project, executor)
        await other.get_warm("token")
        assert await other.call("token") == "one"
        dotenv.write_text("TOKEN=two\n")
        changed = await other.result("token")
        assert (changed.data, "warm" in changed.metadata) == ("two", False)
        await other.get_warm("token")
        assert await other.call("token") == "two"


async def test_a_killed_process_is_replaced_and_no_call_is_lost(warm: Warm) -> None:
    await warm.prepared("killed", "def main(n=0):\n    return n\n")
    warm.process_of("killed").send_signal(signal.SIGKILL)
    results = await asyncio.gather(*(warm.result("killed", n=number) for number in range(4)))
    assert [one.data for one in results] == [0, 1, 2, 3]
    await warm.executor._warmth.pool.settled()
    assert await warm.call("killed", n=9) == 9


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "import _thread, time\n_thread.start_new_thread(time.sleep, (60,))\n",
            "it starts threads when it is imported",
        ),
        ("FILE = open(__file__)\n", "it opens files or connections when it is imported"),
        (
            "import subprocess\nP = subprocess.Popen(['sleep', '60'])\n",
            "it starts processes when it is imported",
        ),
        ("print('hello')\n", "it prints when it is imported"),
        (
            f"{PRIVATE}PLACE = tempfile.gettempdir()\n",
            "it keeps the path of its private folder when it is imported",
        ),
        (
            f"{PRIVATE}os.environ['PLACE'] = 'x:' + tempfile.gettempdir()\n",
            "it keeps the path of its private folder when it is imported",
        ),
        (
            f"{PRIVATE}os.chdir(tempfile.gettempdir())\n",
            "it keeps the path of its private folder when it is imported",
        ),
        (
            "import multiprocessing\nLOCK = multiprocessing.Lock()\n",
            "it creates shared memory when it is imported",
        ),
        (
            "import mmap\nPERMISSIONS = {}\nSEEN = mmap.mmap(-1, 4096)\n",
            "it creates shared memory when it is imported",
        ),
    ],
)
async def test_a_tool_that_cannot_be_copied_runs_cold(warm: Warm, source: str, reason: str) -> None:
    noted: list[str] = []
    warm.executor._warmth.pool._on_refusal = lambda _, why: noted.append(why)
    await warm.prepared("unfit", f"{source}def main():\n    return 1\n")
    assert noted == [reason]
    result = await warm.result("unfit")
    assert result.data == 1
    assert "warm" not in result.metadata


async def test_each_confined_call_has_its_own_private_folder(warm: Warm) -> None:
    await warm.prepared(
        "private",
        "import os, tempfile\n"
        "PERMISSIONS = {'write': ['tmp']}\n"
        "def main(other=''):\n"
        "    folder = tempfile.gettempdir()\n"
        "    before = os.listdir(folder)\n"
        "    open(folder + '/file', 'w').write('x')\n"
        "    try: os.listdir(other or '/root')\n"
        "    except OSError as error: return [before, folder, type(error).__name__]\n",
    )
    first = await warm.call("private")
    second = await warm.call("private", other=first[1])
    assert (first[0], second[0]) == ([], [])
    assert second[2] in ("PermissionError", "FileNotFoundError")
    assert not Path(first[1]).exists()


async def test_a_confined_call_cannot_reach_its_prepared_process(warm: Warm) -> None:
    """Its socket has the parameters of the next calls."""
    await warm.prepared(
        "grasping",
        "import ctypes, os\n"
        "PERMISSIONS = {}\n"
        "PREPARED = os.getpid()\n"
        "def main():\n"
        "    libc = ctypes.CDLL(None, use_errno=True)\n"
        "    pidfd = libc.syscall(434, PREPARED, 0)\n"
        "    taken = [libc.syscall(438, pidfd, fd, 0) for fd in range(8)]\n"
        "    return [pidfd >= 0, os.getpid() != PREPARED, max(taken), ctypes.get_errno()]\n",
    )
    assert await warm.call("grasping") == [True, True, -1, errno.EPERM]


async def test_warm_false_and_short_lived_commands_stay_cold(warm: Warm) -> None:
    await warm.prepared("never", "WARM = False\ndef main():\n    return 1\n")
    assert "warm" not in (await warm.result("never")).metadata
    assert warm.executor._warmth.pool.processes() == 0


async def test_rye_show_says_why_a_tool_starts_cold(warm: Warm) -> None:
    await warm.prepared("unfit", "print('hello')\ndef main():\n    return 1\n")
    await warm.prepared("never", "WARM = False\ndef main():\n    return 1\n")
    await warm.prepared("fit", "def main():\n    return 1\n")
    context = warm.project.context
    reasons = [inspect_chain(name, context).cold for name in ("unfit", "never", "fit")]
    assert reasons == ["it prints when it is imported", "the tool says warm: false", ""]
    config = warm.project.user / ".ai" / "config.yaml"
    config.write_text("warm: {enabled: false}\n")
    config.chmod(0o600)
    assert inspect_chain("fit", context).cold == "switched off in your config (warm)"


def test_nothing_is_left_when_the_loop_ends(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    found: list[psutil.Process] = []

    async def calls() -> None:
        # Not closed, as a program may forget.
        warm = Warm(project, PrimitiveExecutor(context=project.context, warm=lambda _: True))
        await warm.prepared("left", "def main():\n    return 1\n")
        found.append(warm.process_of("left"))

    asyncio.run(calls())
    assert not is_alive(found[0])
