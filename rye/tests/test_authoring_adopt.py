"""``rye add``: what a script takes is read from it, and nothing is executed to find out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rye.authoring.adopt.recognise import Proposal, propose
from rye.errors import RyeError
from rye.items.element import ItemFile, Metadata
from rye.items.metadata import parse_metadata

NONE = "is a file of targets, and none is named; name one"
MEANT = "(did you mean 'build'?); use one of build"
FIRST_LINE = "that can be recognised; add a first line such as #!/usr/bin/env perl, and try again"
SCRIPT = "rye/core/runtimes/script_runtime"


def proposed(folder: Path, name: str, text: str, target: str = "") -> tuple[Proposal, Metadata]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    found = propose(f"{name}{target}", folder, folder)
    file = folder / f"{found.name}{found.extension}"
    return found, parse_metadata(ItemFile(path=file, content=found.text.encode()))


def shape(metadata: Metadata) -> Any:
    """The schema in short: name → type, with a star if it is required."""
    schema = metadata.config_schema or {}
    required = schema.get("required", ())
    return {
        f"{name}{'*' if name in required else ''}": one.get("type") or one.get("enum")
        for name, one in schema.get("properties", {}).items()
    }


def test_a_python_function_keeps_its_signature_as_schema(tmp_path: Path) -> None:
    start = '"""Module."""\nfrom __future__ import annotations\n'
    text = f"{start}\ndef main(city: str, n: int = 1): ...\n"
    found, metadata = proposed(tmp_path, "weather.py", text)
    assert metadata.executor_id == "rye/core/runtimes/python_runtime"
    assert shape(metadata) == {"city*": "string", "n": "integer"}
    # A future import must stay the first statement.
    compile(found.text, "weather.py", "exec", dont_inherit=True)
    assert found.text.endswith(text.partition("annotations\n")[2])


ARGPARSE = '''#!/usr/bin/env python3
"""Greets people."""
import argparse
raise SystemExit("executed")
parser = argparse.ArgumentParser()
parser.add_argument("names", nargs="*", help="who\\nto greet")
parser.add_argument("-t", "--times", type=int, default=1)
parser.add_argument("--mode", choices=["a", "b"], required=True)
parser.add_argument("--tag", action="append")
parser.add_argument("-l", "--loud", action="store_true", dest="is_loud")
parser.add_argument("--version", action="version")
'''


def test_argparse_options_become_parameters(tmp_path: Path) -> None:
    _, metadata = proposed(tmp_path, "cli.py", ARGPARSE)
    assert metadata.executor_id == SCRIPT
    assert metadata.description == "Greets people"
    assert shape(metadata) == {
        "names": "array",
        "times": "integer",
        "mode*": ["a", "b"],
        "tag": "array",
        "is_loud": "boolean",
    }
    assert metadata.config["arguments"] == [
        {"name": "times", "option": "--times"},
        {"name": "mode", "option": "--mode"},
        {"name": "tag", "option": "--tag", "each": True},
        {"name": "is_loud", "flag": "--loud"},
        "--",
        {"name": "names"},
    ]


CLICK = '''import click

@click.command()
@click.option("--days/--no-days", "-d", default=3, help="How many")
@click.option("--shout", is_flag=True)
@click.option("--unit", type=click.Choice(["c", "f"]))
@click.argument("city")
def forecast(**options):
    """Forecast the weather.

    More about it.
    """
'''
TYPER = '''import typer
from typing import Annotated

def run(city: str, days: Annotated[int, typer.Option(help="How many")] = 3, loud: bool = False,
        kind: str = typer.Argument("a", help="Which")):
    """Forecast the weather."""

typer.run(run)
'''


@pytest.mark.parametrize(
    ("text", "expected", "passed"),
    [
        (
            CLICK,
            {"days": "integer", "shout": "boolean", "unit": ["c", "f"], "city*": "string"},
            ["--days", "--shout", "--unit", "--", ""],
        ),
        (
            TYPER,
            {"city*": "string", "days": "integer", "loud": "boolean", "kind": "string"},
            ["--days", "--loud", "--", "", ""],
        ),
        (
            "import sys\nprint(sys.argv[2], sys.argv[1])\n",
            {"arg1*": "string", "arg2": "string"},
            ["", ""],
        ),
        ("import sys\nprint(sys.argv[1:])\n", {"args": "array"}, [""]),
        ("print('hello')\n", {}, []),
        ("def main():\n    print('hello')\nmain()\n", {}, []),
    ],
)
def test_other_python_scripts(
    tmp_path: Path, text: str, expected: dict[str, Any], passed: list[str]
) -> None:
    _, metadata = proposed(tmp_path, "x.py", text)
    assert shape(metadata) == expected
    entries = metadata.config["arguments"]
    assert [
        one if isinstance(one, str) else one.get("option") or one.get("flag") or ""
        for one in entries
    ] == passed
    if "Forecast" in text:
        assert metadata.description == "Forecast the weather"


def test_subcommands_are_passed_as_arguments(tmp_path: Path) -> None:
    text = "import argparse\np = argparse.ArgumentParser()\nsub = p.add_subparsers()\n"
    found, metadata = proposed(tmp_path, "x.py", text)
    assert shape(metadata) == {"args": "array"}
    assert found.notes == ("it has subcommands, which are passed as args",)


def test_a_pep_723_script_runs_with_uv(tmp_path: Path) -> None:
    text = '# /// script\n# dependencies = ["rich"]\n# ///\nimport rich\n'
    found, metadata = proposed(tmp_path, "x.py", text)
    assert found.text.startswith("#!/usr/bin/env -S uv run --no-config ")
    assert (metadata.env_config or {})["interpreter"]["binary"] == "uv"
    assert text in found.text.replace(found.text.split("# ///\n")[1].split("import rich")[0], "")


SHELL = """# Copy a folder.
helper() {
  echo "$3"
}
while getopts ":n:v" opt; do
  case $opt in
    n) NAME=$OPTARG ;;
    v) verbose=1 ;;
  esac
done
SOURCE=$1
target="${2:-/tmp/backup}"
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SHELL, {"n": "string", "v": "boolean", "arg1*": "string", "arg2": "string"}),
        ('#!/bin/sh\nexec ls "$@"\n', {"args": "array"}),
        ("#!/bin/sh\ndate\n", {}),
        ("#!/bin/bash\necho ${1?name} # $4\n", {"arg1*": "string"}),
    ],
)
def test_what_a_shell_script_takes(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    found, metadata = proposed(tmp_path, "copy.sh", text)
    assert (metadata.executor_id, shape(metadata)) == (SCRIPT, expected)
    assert found.text.startswith("#!")
    if text is SHELL:
        assert metadata.description == "Copy a folder"
        properties = (metadata.config_schema or {})["properties"]
        assert properties["n"] == {"type": "string", "description": "name"}
        assert properties["arg2"]["default"] == "/tmp/backup"


@pytest.mark.parametrize(
    ("name", "text", "executor", "expected"),
    [
        (
            "a.mjs",
            "/** Adds. */\nexport function main({ a, b = 2 }) {}\n",
            "node_runtime",
            {"a*": None, "b": "number"},
        ),
        (
            "b.ts",
            "export function main({ a, b = 2 }: { a: string; b?: number }): string {}\n",
            "node_runtime",
            {"a*": "string", "b": "number"},
        ),
        ("a.ts", "export default async function (params: any) {}\n", "node_runtime", {}),
        ("a.js", "console.log(process.argv[2])\n", "script_runtime", {"arg1*": "string"}),
        ("a.pl", "print $ARGV[1];\n", "script_runtime", {"arg1*": "string", "arg2": "string"}),
        ("a", "#!/usr/bin/env ruby\nputs 1\n", "script_runtime", {"args": "array"}),
        ("a.lua", "print(arg[1])\n", "script_runtime", {"arg1*": "string"}),
    ],
)
def test_scripts_in_other_languages(
    tmp_path: Path, name: str, text: str, executor: str, expected: dict[str, Any]
) -> None:
    _, metadata = proposed(tmp_path, name, text)
    assert (metadata.executor_id or "").endswith(executor)
    assert shape(metadata) == expected


def test_targets_of_build_files_pin_them(tmp_path: Path) -> None:
    _, make = proposed(tmp_path, "sub/Makefile", "# Build it.\nbuild: x\n\ttrue\n", ":build")
    assert make.config == {"command": "make", "args": ["-C", "sub", "-f", "Makefile", "build"]}
    assert (make.pins, make.description) == (("sub/Makefile",), "Build it")
    (tmp_path / "yarn.lock").write_text("")
    _, script = proposed(tmp_path, "package.json", '{"scripts": {"t": "jest"}}', ":t")
    assert script.config == {"command": "yarn", "args": ["run", "t"]}
    assert script.pins == ("package.json",)
    assert script.description == "Run the script t of package.json: jest"


def test_a_program_of_the_project_is_pinned(tmp_path: Path) -> None:
    program = tmp_path / "prog"
    program.write_bytes(b"\x7fELF\0")
    program.chmod(0o755)
    found = propose("prog", tmp_path, tmp_path)
    metadata = parse_metadata(ItemFile(path=tmp_path / "prog.yaml", content=found.text.encode()))
    assert metadata.config == {"command": "./prog", "args": "{args}"}
    assert metadata.pins == ("prog",)


@pytest.mark.parametrize(
    ("name", "text", "argument", "message"),
    [
        ("a.txt", "hello\n", "a.txt", f"{{}}/a.txt is not a script {FIRST_LINE}"),
        ("a.py", "def x(:\n", "a.py", "{}/a.py:1: is not Python (invalid syntax); correct it and"),
        ("a", "\0", "a", "{}/a is neither text nor a program; pass a script"),
        ("a", "", "b", "there is no file {}/b; check the path; a target is written Makefile:build"),
        ("Makefile", "build:\n", "Makefile:biuld", f"{{}}/Makefile has no target 'biuld' {MEANT}"),
        ("Makefile", "a:\nb: a\n", "Makefile", f"{{}}/Makefile {NONE}: Makefile:a, Makefile:b"),
        ("Makefile", "", "Makefile", "{}/Makefile is a file of targets, and none is named; add a"),
        (
            "package.json",
            '{"scripts": {"t": "x"}}',
            "package.json",
            f"{{}}/package.json {NONE}: package.json:t",
        ),
        ("package.json", "[", "package.json:a", "{}/package.json is not JSON; correct it"),
        (
            "a",
            "#!./x\n",
            "a",
            "{}/a:1: the first line names './x', which is a relative path; write",
        ),
    ],
)
def test_what_cannot_be_recognised_is_refused_with_the_fix(
    tmp_path: Path, name: str, text: str, argument: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RyeError) as caught:
        propose(argument, tmp_path, tmp_path)
    assert str(caught.value).startswith(message.format(tmp_path))


def test_a_makefile_that_is_a_script_is_added_as_one(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("#!/usr/bin/make -f\nall:\n\techo all\n")
    assert propose("Makefile", tmp_path, tmp_path).kind == "a script for make"
