"""Recognise what a file is, and propose the tool that it becomes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from rye.authoring.adopt.header import as_yaml, with_block, with_python_header, with_shebang
from rye.authoring.adopt.proposal import Findings, arguments_of, schema_of, with_args
from rye.authoring.adopt.python_source import read_python
from rye.authoring.adopt.script_source import is_node_module, node_findings, script_findings
from rye.authoring.adopt.shell_source import shell_findings
from rye.authoring.adopt.targets import (
    CommandTool,
    executable_tool,
    refuse_without_target,
    split_target,
    target_tool,
)
from rye.errors import ItemFormatError, NoMetadataError, RyeError
from rye.formats import format_of, may_be_item
from rye.items.declarations import RefusedError
from rye.items.element import ItemFile
from rye.items.metadata import parse_metadata
from rye.items.shebang import VARIABLE, shebang_of

_RUNTIMES = "rye/core/runtimes"
_SCRIPT = f"{_RUNTIMES}/script_runtime"
_MAX_BYTES = 1024 * 1024
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")
_NODE = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
_UV_LINE = "#!/usr/bin/env -S uv run --no-config --no-project --quiet --script"
# The first line of a file that has none, by its extension.
_FIRST_LINES = {
    ".awk": "#!/usr/bin/env -S awk -f",
    ".bash": "#!/usr/bin/env bash",
    ".fish": "#!/usr/bin/env fish",
    ".jl": "#!/usr/bin/env julia",
    ".lua": "#!/usr/bin/env lua",
    ".php": "#!/usr/bin/env php",
    ".pl": "#!/usr/bin/env perl",
    ".R": "#!/usr/bin/env Rscript",
    ".rb": "#!/usr/bin/env ruby",
    ".sh": "#!/usr/bin/env bash",
    ".tcl": "#!/usr/bin/env tclsh",
    ".zsh": "#!/usr/bin/env zsh",
}
_VENV = {
    "interpreter": {
        "type": "venv_python",
        "venv_path": ".venv",
        "var": VARIABLE,
        "fallback": "python3",
    }
}


class Proposal(NamedTuple):
    """A tool that has not been written yet."""

    name: str
    """The default id."""
    kind: str
    """What the file was recognised as, for people."""
    extension: str
    text: str
    executable: bool = False
    pins: tuple[str, ...] = ()
    """The files of the project that run with it and that nobody signs."""
    notes: tuple[str, ...] = ()


def propose(text: str, cwd: Path, project: Path) -> Proposal:
    """The tool that a path, or a target such as ``Makefile:build``, becomes. Nothing is run.

    Raises :class:`RyeError` if the file does not exist or is nothing that can be recognised.
    """
    target = None if (cwd / text).is_file() else split_target(text)
    if target is not None:
        file = Path(os.path.normpath(cwd / target[0]))
        return _of_command(target_tool(file, target[1], project), f"a target of {file.name}")
    path = Path(os.path.normpath(cwd / text))
    content = _read(path)
    if b"\0" in content[:4096] or _not_text(content):
        if not os.access(path, os.X_OK):
            raise RyeError(f"{path} is neither text nor a program", hint="pass a script")
        return _of_command(executable_tool(path, project), "a program")
    script = content.decode()
    refuse_without_target(path, script)
    return _of_script(path, script)


def _of_script(path: Path, text: str) -> Proposal:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.stem).strip("-.") or "tool"
    executable = os.access(path, os.X_OK)
    try:
        parse_metadata(ItemFile(path=path, content=text.encode()))
    except NoMetadataError:
        pass
    else:
        return Proposal(name, "a tool", path.suffix, text, executable)
    kind, body, metadata, findings = _recognised(path, text)
    described = findings.description
    if described.endswith(".") and ". " not in described:
        described = described[:-1]
    about = {"description": described} if described else {}
    metadata = {"executor_id": metadata.pop("executor_id"), **about, **metadata}
    item_format = format_of(path)
    if item_format.kind == "python":
        body = with_python_header(body, metadata)
    else:
        body = with_block(body, item_format.comment, metadata)
    return Proposal(name, kind, path.suffix, body, executable, notes=findings.notes)


def _recognised(path: Path, text: str) -> tuple[str, str, dict[str, Any], Findings]:
    """What the file is, its text with a first line if it needs one, and its metadata."""
    interpreter = _interpreter(text, path)
    if path.suffix == ".py" or interpreter.startswith("python") or interpreter == "uv":
        return _python(path, text, interpreter)
    if path.suffix in _NODE and (is_node_module(text) or path.suffix.endswith("ts")):
        return _node(text)
    if not text.startswith("#!"):
        line = "#!/usr/bin/env node" if path.suffix in _NODE else _FIRST_LINES.get(path.suffix)
        if line is None or not may_be_item(path.suffix):
            raise RyeError(
                f"{path} is not a script that can be recognised",
                hint="add a first line such as #!/usr/bin/env perl, and try again",
            )
        text = with_shebang(text, line)
        interpreter = _interpreter(text, path)
    if interpreter in _SHELLS:
        findings = shell_findings(text)
    else:
        findings = with_args(script_findings(text, format_of(path).comment))
    return f"a script for {interpreter}", text, _script_metadata(findings), findings


def _python(path: Path, text: str, interpreter: str) -> tuple[str, str, dict[str, Any], Findings]:
    found = read_python(text, path)
    if found.is_function:
        # The signature is the schema, and the docstring the description.
        metadata = {"executor_id": f"{_RUNTIMES}/python_runtime"}
        return "a Python function", text, metadata, found.findings._replace(description="")
    findings = with_args(found.findings)
    metadata = _script_metadata(findings)
    if found.has_dependencies or interpreter == "uv":
        kind = "a Python script with packages, run by uv"
        if interpreter != "uv":
            rest = text.partition("\n")[2] if text.startswith("#!") else text
            text = f"{_UV_LINE}\n{rest}"
        return kind, text, metadata, findings
    text = with_shebang(text, "#!/usr/bin/env python3")
    return "a Python script", text, {**metadata, "env_config": _VENV}, findings


def _node(text: str) -> tuple[str, str, dict[str, Any], Findings]:
    findings = node_findings(text)
    metadata: dict[str, Any] = {"executor_id": f"{_RUNTIMES}/node_runtime"}
    if not findings.open_ended:
        metadata["config_schema"] = schema_of(findings.parameters)
    return "a JavaScript or TypeScript function", text, metadata, findings


def _script_metadata(findings: Findings) -> dict[str, Any]:
    metadata: dict[str, Any] = {"executor_id": _SCRIPT}
    # Also without arguments: a script that was written for people does not read JSON from stdin.
    metadata["config"] = {"arguments": arguments_of(findings)}
    metadata["config_schema"] = schema_of(findings.parameters)
    return metadata


def _interpreter(text: str, path: Path) -> str:
    try:
        found = shebang_of(text)
    except RefusedError as fault:
        raise ItemFormatError(path, fault.reason, line=1, hint="correct it first") from None
    return "" if found is None else found.program.rpartition("/")[2]


def _of_command(tool: CommandTool, kind: str) -> Proposal:
    return Proposal(tool.name, kind, ".yaml", as_yaml(tool.metadata), pins=tool.pins)


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise RyeError(
                f"there is no file {path}",
                hint="check the path; a target is written Makefile:build or package.json:test",
            )
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise RyeError(f"{path} cannot be read ({reason})", hint="check the path") from None


def _not_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return True
    return len(content) > _MAX_BYTES
