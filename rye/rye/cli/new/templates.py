"""The templates of ``rye new``.

A template is a file in ``template_files/``. In it, ``@@DESCRIPTION@@`` and ``@@EXECUTOR@@`` are
replaced by quoted strings that are valid in Python, YAML and TOML, ``@@SUMMARY@@`` by the same
without quotes, ``@@ITEM@@`` by the id quoted for a shell, ``@@COMMENT@@`` by the start of a
comment, and ``@@INTERPRETER@@`` by the name of the template.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent / "template_files"
_PLACEHOLDER = r"@@([A-Z]+)@@"
_RUNTIMES = "rye/core/runtimes"
_PRIMITIVES = "rye/core/primitives"


class Template(NamedTuple):
    """A template for a tool."""

    name: str
    """The value of ``--runtime``."""
    executor_id: str
    extension: str
    summary: str
    does: str = "Greets someone"
    """The default description."""
    example: str = "name=you"
    """The parameters of a first call."""
    source: str = ""
    """The file in ``template_files/``; by default it is named after the template."""


TEMPLATES = (
    Template("python", f"{_RUNTIMES}/python_runtime", ".py", "a Python function"),
    Template("python-script", f"{_RUNTIMES}/python_script_runtime", ".py", "a Python script"),
    Template(
        "uv", f"{_RUNTIMES}/uv_script_runtime", ".py", "a Python script with packages, run by uv"
    ),
    Template("bash", f"{_RUNTIMES}/bash_runtime", ".sh", "a shell script"),
    Template("node", f"{_RUNTIMES}/node_runtime", ".mjs", "a JavaScript function"),
    Template(
        "typescript",
        f"{_RUNTIMES}/node_runtime",
        ".mts",
        "a TypeScript function (node 22.18 or newer, or tsx)",
    ),
    Template("command", f"{_PRIMITIVES}/subprocess", ".yaml", "a program and its arguments"),
    Template(
        "http",
        f"{_PRIMITIVES}/http_client",
        ".yaml",
        "an HTTP request",
        does="Fetches a URL",
        example="url=https://example.com",
    ),
    Template(
        "mcp",
        f"{_RUNTIMES}/mcp_stdio_runtime",
        ".yaml",
        "a tool on another MCP server",
        does="Searches the tools of this project",
        example="query=file",
    ),
)

# Interpreter → extension of the files that it runs.
_EXTENSIONS = {
    "bash": ".sh", "bun": ".ts", "crystal": ".cr", "deno": ".ts", "elixir": ".exs", "fish": ".fish",
    "gawk": ".awk", "groovy": ".groovy", "guile": ".scm", "jq": ".jq", "julia": ".jl",
    "ksh": ".ksh", "lua": ".lua", "node": ".mjs", "nu": ".nu", "perl": ".pl", "pwsh": ".ps1",
    "python": ".py", "python3": ".py", "racket": ".rkt", "Rscript": ".R", "ruby": ".rb",
    "sh": ".sh", "tclsh": ".tcl", "zsh": ".zsh",
}  # fmt: skip
# In these languages the first line begins a comment that another line must end, or is an error.
_WITHOUT_SHEBANG = frozenset({".scm", ".ps1", ".py"})


def template_named(name: str) -> Template | None:
    """Return the template with this name."""
    return next((each for each in TEMPLATES if each.name == name), None)


def template_for(executor_id: str) -> Template | None:
    """Return the first template for this runtime or primitive."""
    return next((each for each in TEMPLATES if each.executor_id == executor_id), None)


def bare_template(executor_id: str, extension: str) -> Template:
    """Return a template with metadata only, for a runtime that Rye does not ship."""
    from rye.formats import format_of

    kind = format_of(Path(f"tool{extension}")).kind
    source = {"python": "bare.py.tmpl", "yaml": "bare.yaml.tmpl"}.get(kind, "bare.block.tmpl")
    return Template(executor_id, executor_id, extension, "", does="Does nothing yet", source=source)


def script_template(interpreter: str) -> Template | None:
    """Return a template for a script with this interpreter, if a file can begin with a shebang."""
    extension = _EXTENSIONS.get(interpreter)
    if extension is None or extension in _WITHOUT_SHEBANG:
        return None
    return Template(
        interpreter,
        f"{_RUNTIMES}/script_runtime",
        extension,
        f"a script for {interpreter}",
        does="Does nothing yet",
        source="script.block.tmpl",
    )


def extension_for(interpreter: str) -> str | None:
    """Return the extension of the files that an interpreter runs."""
    return _EXTENSIONS.get(interpreter.rpartition("/")[2])


def render(template: Template, item_id: str, description: str) -> str:
    """Return the text of the tool. ``description`` is one line of printable text."""
    from rye.formats import format_of

    source = template.source or f"{template.name}{template.extension}.tmpl"
    values = {
        "COMMENT": format_of(Path(f"tool{template.extension}")).comment,
        "DESCRIPTION": json.dumps(description, ensure_ascii=False),
        "EXECUTOR": json.dumps(template.executor_id, ensure_ascii=False),
        "INTERPRETER": template.name,
        "ITEM": shlex.quote(item_id),
        "SUMMARY": json.dumps(description, ensure_ascii=False)[1:-1],
    }
    text = (_FOLDER / source).read_text(encoding="utf-8")
    return re.sub(_PLACEHOLDER, lambda found: values[found[1]], text)
