"""The templates of ``rye new``: which there are, and the text of a tool made from one.

A template is a file in ``template_files/``. ``@@DESCRIPTION@@`` and ``@@EXECUTOR@@`` stand for
quoted text that Python, YAML and TOML read alike, ``@@ITEM@@`` for the id as a shell takes it,
``@@COMMENT@@`` for the sign that begins a comment.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent / "template_files"
_MARK = re.compile(r"@@([A-Z]+)@@")
_RUNTIMES = "rye/core/runtimes"
_PRIMITIVES = "rye/core/primitives"


class Template(NamedTuple):
    """What a tool is made from."""

    name: str
    """What ``--runtime`` calls it."""
    executor_id: str
    extension: str
    summary: str
    does: str = "Greets somebody"
    """What the tool does until somebody changes it."""
    example: str = "name=you"
    """The arguments of a first call."""
    source: str = ""
    """The file in ``template_files/``, if its name is not made of the template's."""


TEMPLATES = (
    Template("python", f"{_RUNTIMES}/python_runtime", ".py", "a Python function"),
    Template(
        "python-script", f"{_RUNTIMES}/python_script_runtime", ".py", "a Python file, run as it is"
    ),
    Template("uv", f"{_RUNTIMES}/uv_script_runtime", ".py", "a Python file with packages, by uv"),
    Template("bash", f"{_RUNTIMES}/bash_runtime", ".sh", "a shell script"),
    Template("node", f"{_RUNTIMES}/node_runtime", ".mjs", "a JavaScript function"),
    Template(
        "typescript",
        f"{_RUNTIMES}/node_runtime",
        ".mts",
        "a TypeScript function (node 22.18 or newer, or tsx)",
    ),
    Template("command", f"{_PRIMITIVES}/subprocess", ".yaml", "a program with its arguments"),
    Template(
        "http",
        f"{_PRIMITIVES}/http_client",
        ".yaml",
        "an HTTP request",
        does="Gets what is at an address",
        example="url=https://example.com",
    ),
    Template(
        "mcp",
        f"{_RUNTIMES}/mcp_stdio_runtime",
        ".yaml",
        "a tool of another MCP server",
        does="Finds tools of this project by words",
        example="query=file",
    ),
)

# Which extension a tool has whose runtime starts one of these.
_EXTENSIONS = {
    "bash": ".sh", "bun": ".ts", "crystal": ".cr", "deno": ".ts", "elixir": ".exs", "fish": ".fish",
    "gawk": ".awk", "groovy": ".groovy", "guile": ".scm", "jq": ".jq", "julia": ".jl",
    "ksh": ".ksh", "lua": ".lua", "node": ".mjs", "nu": ".nu", "perl": ".pl", "pwsh": ".ps1",
    "python": ".py", "python3": ".py", "racket": ".rkt", "Rscript": ".R", "ruby": ".rb",
    "sh": ".sh", "tclsh": ".tcl", "zsh": ".zsh",
}  # fmt: skip


def template_named(name: str) -> Template | None:
    """By its short name."""
    return next((each for each in TEMPLATES if each.name == name), None)


def template_for(executor_id: str) -> Template | None:
    """The first that is for this runtime or primitive."""
    return next((each for each in TEMPLATES if each.executor_id == executor_id), None)


def bare_template(executor_id: str, extension: str) -> Template:
    """A template for a runtime that Rye does not ship: metadata and nothing else."""
    from rye.formats import format_of

    kind = format_of(Path(f"tool{extension}")).kind
    source = {"python": "bare.py.tmpl", "yaml": "bare.yaml.tmpl"}.get(kind, "bare.block.tmpl")
    return Template(
        executor_id, executor_id, extension, "", does="Does not do much yet", source=source
    )


def extension_for(interpreter: str) -> str | None:
    """The extension of what a program of this name reads."""
    return _EXTENSIONS.get(interpreter.rpartition("/")[2])


def rendered(template: Template, item_id: str, description: str) -> str:
    """The text of the tool. ``description`` is one line of printable text."""
    from rye.formats import format_of

    source = template.source or f"{template.name}{template.extension}.tmpl"
    values = {
        "COMMENT": format_of(Path(f"tool{template.extension}")).comment,
        "DESCRIPTION": json.dumps(description, ensure_ascii=False),
        "EXECUTOR": json.dumps(template.executor_id, ensure_ascii=False),
        "ITEM": shlex.quote(item_id),
    }
    text = (_FOLDER / source).read_text(encoding="utf-8")
    return _MARK.sub(lambda mark: values[mark[1]], text)
