"""What the recipes for command lines call refused is refused, and the rest is signed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rye_console import Console

PAGE = Path(__file__).parents[1] / "docs" / "tools" / "shell.md"
ROW = re.compile(r"\| `(\[.*?\])`.* \| .*?`(\[.*\])`.*\|")


def recipes() -> list[tuple[list[str], list[str]]]:
    lines = PAGE.read_text().partition("### Recipes")[2].splitlines()
    found = [row.groups() for line in lines if (row := ROW.fullmatch(line))]
    assert len(found) == len([line for line in lines if line.startswith("| `")])
    return [(argv(refused), argv(accepted)) for refused, accepted in found]


def argv(text: str) -> list[str]:
    words: list[str] = json.loads(text.replace("\\|", "|"))
    return words


@pytest.mark.parametrize(("refused", "accepted"), recipes(), ids=lambda words: words[0])
def test_a_recipe_turns_a_refused_command_line_into_one_that_is_signed(
    tmp_path: Path, refused: list[str], accepted: list[str]
) -> None:
    console = Console(tmp_path)
    for name, words in (("refused", refused), ("accepted", accepted)):
        named = set(re.findall(r"(?<!\$)\{(\w+)\}", " ".join(words))) - {"project_path"}
        parameters = {parameter: {"type": "string"} for parameter in named}
        tool = {
            "version": "1.0.0",
            "executor_id": "rye/core/primitives/subprocess",
            "config": {"command": words[0], "args": words[1:]},
            "config_schema": {"properties": parameters, "additionalProperties": False},
        }
        console.project.tool(f"{name}.yaml", json.dumps(tool), signed=False)
    assert console("sign", "accepted").code == 0
    done = console("sign", "refused")
    assert done.code == 1
    assert "; " in done.stderr
