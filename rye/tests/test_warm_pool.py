"""The pool of prepared processes: when one is started, and when it ends."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import prepared_program
import pytest
from rye.context import Context
from rye.errors import SettingsError
from rye.warm.pool import WarmPool
from rye.warm.request import WarmRequest
from rye.warm.settings import WarmConfig, WarmSettings

pytestmark = pytest.mark.anyio

# Prepared at once, and says what it needs.
PROGRAM = (
    Path(prepared_program.__file__)
    .read_text()
    .replace('f"ready {os.getpid()}\\n"', '(os.environ.get("REPORT") or "{}") + "\\n"')
)


class Pool:
    """A pool with a clock that the test moves."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.now = 1000.0
        self.refused: list[str] = []
        self.settings = WarmSettings(**settings)
        self.program = folder / "program.py"
        self.program.write_text(PROGRAM)
        self.pool = WarmPool(
            lambda: self.settings,
            lambda _, reason: self.refused.append(reason),
            clock=lambda: self.now,
        )

    def request(self, tool: str, memory: int = 1, **changes: Any) -> WarmRequest:
        env = {"REPORT": f'{{"memory": {memory}, "paths": []}}', **changes.pop("env", {})}
        config = {"command": sys.executable, "args": [str(self.program)], "env": env}
        return WarmRequest(tool=tool, closure=tool * 8, config={**config, **changes})

    def call(self, tool: str, **changes: Any) -> bool:
        """True if a prepared process could take the call."""
        return self.pool.process(self.request(tool, **changes)) is not None

    async def warm(self, *tools: str, **changes: Any) -> None:
        """Prepare tools."""
        for tool in tools:
            self.pool.process(self.request(tool, **changes), at_once=True)
            await self.pool.settled()
            self.now += 1


async def test_the_second_call_within_a_minute_prepares_a_process(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    assert not pool.call("a")
    pool.now += 61
    assert not pool.call("a")
    assert pool.pool.processes() == 0
    pool.now += 59
    assert not pool.call("a")
    assert pool.pool.processes() == 1
    await pool.pool.settled()
    assert pool.call("a")
    assert not pool.call("a", env={"OTHER": "1"})
    await pool.pool.aclose()
    assert pool.pool.processes() == 0


async def test_a_process_ends_after_a_while_without_a_call(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    await pool.warm("a", "b")
    pool.now += 100
    assert pool.call("a")
    pool.now += 30
    pool.pool.end_idle()
    await pool.pool.settled()
    assert pool.pool.processes() == 1
    assert pool.call("a")
    await pool.pool.aclose()


async def test_the_least_recently_used_process_makes_room(tmp_path: Path) -> None:
    pool = Pool(tmp_path, processes=2)
    await pool.warm("a", "b")
    assert pool.call("a")
    pool.now += 1
    await pool.warm("c")
    assert pool.pool.processes() == 2
    assert [pool.call(tool) for tool in "acb"] == [True, True, False]
    await pool.pool.aclose()


async def test_all_processes_together_stay_below_the_memory(tmp_path: Path) -> None:
    pool = Pool(tmp_path, memory=100)
    await pool.warm("a", "b", memory=45)
    await pool.warm("c", memory=50)
    assert [pool.call("a", memory=45), pool.call("b", memory=45)] == [False, True]
    await pool.warm("d", memory=101)
    assert pool.refused == [
        "it needs more memory than all prepared processes may have (warm.memory)"
    ]
    assert not pool.call("d", memory=101)
    await pool.pool.aclose()


async def test_a_tool_has_one_process_which_is_replaced(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    await pool.warm("a")
    await pool.warm("a", cwd=str(tmp_path))
    assert pool.pool.processes() == 1
    assert pool.call("a", cwd=str(tmp_path))
    await pool.pool.aclose()


async def test_a_new_package_needs_a_new_process(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    packages = tmp_path / "site-packages"
    packages.mkdir()
    report = {"REPORT": f'{{"memory": 1, "paths": ["{packages}"]}}'}
    await pool.warm("a", env=report)
    assert pool.call("a", env=report)
    (packages / "new").mkdir()
    assert not pool.call("a", env=report)
    await pool.pool.aclose()


async def test_a_process_that_cannot_be_prepared_is_not_tried_at_each_call(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    for env in ({"REPORT": '{"cold": "it prints"}'}, {"REPORT": "not JSON"}):
        await pool.warm("ab"[len(pool.refused)], env=env)
    await pool.warm("c", command="/does/not/exist")
    assert pool.refused == [
        "it prints",
        "its runtime does not report that it is prepared",
        "it could not be prepared (Failed to spawn: /does/not/exist: No such file or directory)",
    ]
    await pool.warm("a", env={"REPORT": '{"cold": "it prints"}'})
    assert len(pool.refused) == 3
    pool.now += 601
    await pool.warm("a", env={"REPORT": '{"cold": "it prints"}'})
    assert len(pool.refused) == 4


async def test_the_user_can_switch_it_off(tmp_path: Path) -> None:
    for settings in ({"enabled": False}, {"processes": 0}):
        pool = Pool(tmp_path, **settings)
        await pool.warm("a")
        assert pool.pool.processes() == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("warm: 1", "expected a mapping in 'warm'"),
        (
            "warm: {size: 1}",
            "unknown key 'warm.size'; known are enabled, idle_seconds, processes, memory",
        ),
        ("warm: {enabled: 1}", "expected true or false in 'warm.enabled'"),
        (
            "warm: {idle_seconds: 0}",
            "expected a number of seconds up to 86400 in 'warm.idle_seconds'",
        ),
        (
            "warm: {processes: -1}",
            "expected a number of processes from 0 to 256 in 'warm.processes'",
        ),
        ("warm: {memory: big}", "expected a size such as 512MiB in 'warm.memory'"),
    ],
)
async def test_a_mistake_in_the_config_is_named(tmp_path: Path, text: str, reason: str) -> None:
    config = config_of(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        config.current()
    assert str(raised.value) == f"{tmp_path}/.ai/config.yaml: {reason}; correct it"


async def test_the_settings_of_the_user_are_read(tmp_path: Path) -> None:
    text = "warm: {enabled: false, idle_seconds: 5, processes: 3, memory: 1GiB}"
    assert config_of(tmp_path, text).current() == WarmSettings(
        enabled=False, idle_seconds=5, processes=3, memory=2**30
    )


def config_of(folder: Path, text: str) -> WarmConfig:
    """The config of a user."""
    (folder / ".ai").mkdir(exist_ok=True)
    (folder / ".ai" / "config.yaml").write_text(text)
    context = Context(
        project_path=folder,
        user_space=folder,
        system_space=folder,
        environ=MappingProxyType({}),
    )
    return WarmConfig(context)


async def test_a_cancelled_preparation_leaves_no_process(tmp_path: Path) -> None:
    pool = Pool(tmp_path)
    pool.pool.process(pool.request("a"), at_once=True)
    await asyncio.sleep(0)
    await pool.pool.aclose()
    assert pool.pool.processes() == 0
    assert pool.refused == []
