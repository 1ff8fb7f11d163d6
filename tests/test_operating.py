"""The unit, the container file and the table on the page about operating the server are true."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import click
import pytest
from rye.cli.commands.mcp import command
from rye.mcp.call_log import CallEntry
from rye.mcp.request import Request

PAGE = (Path(__file__).parents[1] / "docs" / "operating.md").read_text()
UNIT, CONTAINER = [
    block.replace("\\\n", "")
    for kind in ("ini", "dockerfile")
    for block in re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
]


def options_of(words: list[str]) -> dict[str, object]:
    """Parse what follows ``rye mcp`` without running it; fails for an unknown option."""
    with command.make_context("mcp", words[words.index("mcp") + 1 :]) as context:
        return context.params


def test_the_unit_and_the_container_start_the_server_with_options_that_exist() -> None:
    started = next(line for line in UNIT.splitlines() if line.startswith("ExecStart="))
    assert options_of(started.split())["max_calls"] == 8
    arguments = [
        word
        for name in ("ENTRYPOINT", "CMD")
        for line in CONTAINER.splitlines()
        if line.startswith(f"{name} ")
        for word in json.loads(line.removeprefix(f"{name} "))
    ]
    assert options_of(arguments)["http"] == "0.0.0.0:8321"
    with pytest.raises(click.NoSuchOption):
        options_of(["mcp", "--no-such-option"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "rye-mcp.service"
    # The program must exist on the machine that verifies the unit.
    unit.write_text(UNIT.replace("/usr/local/bin/rye", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    # Other units of the machine may have faults, too.
    assert [line for line in done.stderr.splitlines() if "rye-mcp" in line] == []


def test_the_page_lists_the_fields_of_the_log() -> None:
    class Caller:
        client, token_name = "", ""

    line = json.loads(CallEntry(cast("Request", Caller()), "it", exists=True).line(0))
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(line)
