"""Completion: the answers to the shells' scripts, and a real bash."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lilux.primitives.signing import generate_keypair
from rye.trust.operations import trust_add, trust_list
from rye_command import InProcessRye, Terminal, environment, rye
from rye_project import Project

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where it is"},
        "count": {"type": "integer"},
        "unit": {"enum": ["celsius", "kelvin", 3]},
        "verbose": {"type": "boolean"},
        "tags": {"type": "array"},
    },
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    project.command("demo/weather", "/bin/echo", "{city}", config_schema=SCHEMA)
    project.command("demo/wind", "/bin/echo")
    return project


class Shell:
    """Sends the requests of the completion scripts."""

    def __init__(self, in_process: InProcessRye, monkeypatch: pytest.MonkeyPatch) -> None:
        self._in_process = in_process
        self._monkeypatch = monkeypatch

    def ask(self, **variables: str) -> str:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
        done = self._in_process()
        assert (done.code, done.stderr) == (0, "")
        return done.stdout

    def bash(self, line: str, **variables: str) -> list[str]:
        answer = self.ask(
            _RYE_COMPLETE="bash_complete", COMP_LINE=line, COMP_POINT=str(len(line)), **variables
        )
        return [one.removeprefix("plain,") for one in answer.splitlines() if one]


@pytest.fixture
def shell(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(InProcessRye(project.path, project.user, monkeypatch, capfd), monkeypatch)


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("rye ru", ["run"]),
        ("rye --ver", ["--version"]),
        ("rye run --fr", ["--frozen"]),
        ("rye run demo/", ["demo/weather", "demo/wind"]),
        ("rye run wea", ["weather"]),
        ("rye run rye/core/", []),
        ("rye show rye/core/primitives/s", ["rye/core/primitives/subprocess"]),
        ("rye run demo/weather c", ["city=", "count="]),
        ("rye run weather --json c", ["city=", "count="]),
        ("rye run demo/weather city=x count=1 tags=a unit=3 ", ["verbose=", "tags="]),
        ("rye run demo/weather unit=", ["celsius", "kelvin", "3"]),
        ("rye run demo/weather unit=k", ["kelvin"]),
        ("rye run demo/weather city='two words' verbose=t", ["true"]),
        ("rye run demo/weather city=", []),
        ("rye run demo/weather nope=", []),
        ("rye run nowhere c", []),
        ("rye run ../../etc c", []),
        ("rye run demo/weather --c", ["--city", "--count"]),
        ("rye run demo/weather --city Oslo --c", ["--count"]),
        ("rye run demo/weather --unit ", ["celsius", "kelvin", "3"]),
        ("rye run demo/weather --unit k", ["kelvin"]),
        ("rye run demo/weather --unit=k", ["kelvin"]),
        ("rye run demo/weather --verbose ci", ["city="]),
        ("rye run --c", []),
        ("rye run demo/weather --fr", ["--frozen"]),
        (
            "rye new x --runtime py",
            ["python", "python-script", "python_runtime", "python_script_runtime"],
        ),
        ("rye new x --runtime=ba", ["bash", "bash_runtime"]),
        ("rye new x -r rye/core/runtimes/n", ["rye/core/runtimes/node_runtime"]),
        ("rye help tru", ["trust"]),
        ("rye help trust r", ["remove"]),
        ("rye help demo/we", ["demo/weather"]),
        ("rye completion f", ["fish"]),
        ("rye trust re", ["remove"]),
        ("rye sign demo/wi", ["demo/wind"]),
        ("rye sign ./no/item", ["file,./no/item"]),
        ("rye -C /nowhere run ", []),
    ],
)
def test_bash_gets_completions(shell: Shell, line: str, completions: list[str]) -> None:
    assert shell.bash(line) == completions


def test_only_text_before_the_cursor_is_completed(shell: Shell) -> None:
    assert shell.ask(
        _RYE_COMPLETE="bash_complete", COMP_LINE="rye ruXX demo/weather", COMP_POINT="6"
    ).splitlines() == ["plain,run"]


def test_bash_that_does_not_split_at_equals_signs_gets_the_whole_word(shell: Shell) -> None:
    assert shell.bash("rye run demo/weather unit=k", COMP_WORDBREAKS=" \t\n") == ["unit=kelvin"]


def test_the_project_option_is_used_for_completion(shell: Shell, tmp_path: Path) -> None:
    other = Project(tmp_path / "other")
    other.command("elsewhere/tool", "/bin/true")
    assert shell.bash(f"rye -C {other.path} run els") == ["elsewhere/tool"]


def test_fingerprints_of_removable_keys_are_completed(shell: Shell, project: Project) -> None:
    _, public = generate_keypair()
    file = project.user / "ann.pem"
    file.write_bytes(public)
    ann = trust_add(file, project.context, owner="ann").fingerprint
    # The user's own key and the release key cannot be removed.
    assert len(trust_list(project.context)) == 3
    assert shell.bash("rye trust remove ") == [ann]
    assert shell.bash(f"rye trust remove {ann[:4]}") == [ann]


def test_zsh_and_fish_get_descriptions(shell: Shell) -> None:
    zsh = shell.ask(
        _RYE_COMPLETE="zsh_complete", COMP_WORDS="rye run demo/weather ci", COMP_CWORD="3"
    )
    assert zsh.splitlines() == ["plain", "city=", "Where it is"]
    fish = shell.ask(
        _RYE_COMPLETE="fish_complete", COMP_WORDS="rye run demo/weather ci", COMP_CWORD="ci"
    )
    assert fish.splitlines() == ["plain,city=\tWhere it is"]


def test_zsh_and_fish_get_the_whole_word_of_an_option_with_its_value(shell: Shell) -> None:
    words = "rye run demo/weather --unit=k"
    zsh = shell.ask(_RYE_COMPLETE="zsh_complete", COMP_WORDS=words, COMP_CWORD="3")
    assert zsh.splitlines() == ["plain", "--unit=kelvin", "_"]
    fish = shell.ask(_RYE_COMPLETE="fish_complete", COMP_WORDS=words, COMP_CWORD="--unit=k")
    assert fish.splitlines() == ["plain,--unit=kelvin"]


def test_a_completion_loads_neither_asyncio_nor_the_other_commands(project: Project) -> None:
    program = (
        "import sys\nfrom rye.cli.entry import run_command\nrun_command([])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    line = "rye run demo/weather ci"
    asked = {"_RYE_COMPLETE": "bash_complete", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project.path,
        env=environment(project.user, asked),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "plain,city=\n"
    loaded = set(done.stderr.split())
    assert loaded & {"asyncio", "mcp", "cryptography", "rye.cli.commands.doctor"} == set()


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_shells_can_parse_the_scripts(project: Project, name: str) -> None:
    done = rye("completion", name, cwd=project.path, user=project.user)
    assert done.code == 0, done.stderr
    assert f"_RYE_COMPLETE={name}_complete" in done.stdout
    binary = shutil.which(name)
    if binary is None:
        pytest.skip(f"{name} is not installed")
    subprocess.run([binary, "-n"], input=done.stdout.encode(), check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_real_bash_completes_a_whole_call(project: Project) -> None:
    start = project.user / "start"
    start.write_text(
        "PS1='> '\n"
        f'rye() {{ {sys.executable} -m rye "$@"; }}\n'
        'eval "$(rye completion bash)"\n'
        "bind 'set bell-style none'\n"
        "bind 'set enable-bracketed-paste off'\n"
    )
    argv = ["bash", "--rcfile", str(start), "-i"]
    with Terminal(cwd=project.path, user=project.user, argv=argv) as terminal:
        terminal.wait_for("> ")
        terminal.type("rye run demo/we\t")
        terminal.wait_for("demo/weather ")
        terminal.type("ci\t")
        # There is no space after it, since the value follows.
        terminal.wait_for("demo/weather city=")
        terminal.type("Oslo un\t")
        terminal.wait_for("city=Oslo unit=")
        terminal.type("k\t")
        terminal.wait_for("unit=kelvin ")
        terminal.type("\n")
        terminal.wait_for("unit=kelvin \nOslo\n")
        terminal.type("exit\n")
        assert terminal.finish() == 0
