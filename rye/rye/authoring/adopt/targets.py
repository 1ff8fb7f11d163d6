"""Targets of build files, and programs: tools that run a command and pin what it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rye.authoring.adopt.proposal import schema_of
from rye.authoring.adopt.script_source import positional
from rye.errors import RyeError
from rye.spaces.ids import SUBPROCESS
from rye.suggestions import closest

_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_TARGET_FILES = (*_MAKEFILES, "package.json")
_RULE = r"(?m)^([A-Za-z0-9][\w./-]*)\s*:(?!=)([^\n]*)"
_RUNNERS = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
)
_LISTED = 12
_MAX_BYTES = 1024 * 1024


class CommandTool(NamedTuple):
    """A tool that runs a command."""

    name: str
    """The default id."""
    metadata: dict[str, Any]
    pins: tuple[str, ...]


def split_target(text: str) -> tuple[str, str] | None:
    """``Makefile:build`` as file and target; ``None`` if the text does not name a target."""
    file, colon, target = text.rpartition(":")
    name = file.rpartition("/")[2]
    return (file, target) if colon and name in _TARGET_FILES else None


def refuse_without_target(file: Path, text: str) -> None:
    """Raise :class:`RyeError` for a file of targets of which none was named."""
    # A makefile with a first line of its own is a script.
    if file.name not in _TARGET_FILES or text.startswith("#!"):
        return
    names = _names(_scripts(file, text) if file.name == "package.json" else _rules(text))
    listed = ", ".join(f"{file.name}:{name}" for name in names[:_LISTED])
    raise RyeError(
        f"{file} is a file of targets, and none is named",
        hint=f"name one: {listed}" if listed else "add a target to it first",
    )


def target_tool(file: Path, target: str, project: Path) -> CommandTool:
    """The tool that runs a target. Raises :class:`RyeError` if there is no such target."""
    relative = _inside(file, project)
    text = _text(file)
    if file.name == "package.json":
        return _script(file, relative, text, target)
    targets = _rules(text)
    if target not in targets:
        raise _no_target(file, target, targets)
    folder = relative.rpartition("/")[0]
    args = [*(["-C", folder] if folder else []), "-f", file.name, target]
    described = _comment_of(text, target) or f"Run the target {target} of {relative}"
    return _command(f"make/{_plain(target)}", "make", args, described, relative)


def executable_tool(path: Path, project: Path) -> CommandTool:
    """The tool that runs a program, which is pinned if it is a file of the project."""
    inside = path.is_relative_to(project)
    relative = path.relative_to(project).as_posix() if inside else ""
    command = (relative if "/" in relative else f"./{relative}") if inside else str(path)
    parameters = [positional()]
    metadata = {
        "executor_id": SUBPROCESS,
        "description": f"Run {path.name}",
        "config": {"command": command, "args": "{args}"},
        "config_schema": schema_of(parameters),
    }
    pins = (relative,) if inside else ()
    if pins:
        metadata["pins"] = list(pins)
    return CommandTool(_plain(path.stem), metadata, pins)


def _script(file: Path, relative: str, text: str, target: str) -> CommandTool:
    scripts = _scripts(file, text)
    if target not in scripts:
        raise _no_target(file, target, scripts)
    folder = relative.rpartition("/")[0]
    runner = next((one for name, one in _RUNNERS if (file.parent / name).is_file()), "npm")
    described = f"Run the script {target} of {relative}: {scripts[target]}"[:300]
    made = _command(f"{runner}/{_plain(target)}", runner, ["run", target], described, relative)
    if folder:
        made.metadata["config"]["cwd"] = "{project_path}/" + folder
    return made


def _rules(text: str) -> dict[str, str]:
    return dict(re.findall(_RULE, text))


def _scripts(file: Path, text: str) -> dict[str, Any]:
    try:
        scripts: dict[str, Any] = json.loads(text).get("scripts") or {}
    except (ValueError, AttributeError):
        raise RyeError(f"{file} is not JSON", hint="correct it") from None
    return scripts


def _command(name: str, program: str, args: list[str], about: str, pin: str) -> CommandTool:
    metadata = {
        "executor_id": SUBPROCESS,
        "description": " ".join(about.split()),
        "config": {"command": program, "args": args},
        "config_schema": schema_of([]),
        "pins": [pin],
    }
    return CommandTool(name, metadata, (pin,))


def _comment_of(text: str, target: str) -> str:
    """``build: ## Build it``, or the comment above the rule."""
    beside = re.search(rf"(?m)^{re.escape(target)}\s*:[^#\n]*##\s*(.+)$", text)
    if beside is not None:
        return beside[1].strip()
    above = re.search(rf"(?m)^#+\s*(\w.*)\n(?:\.PHONY.*\n)?{re.escape(target)}\s*:(?!=)", text)
    return above[1].strip().rstrip(".") if above is not None else ""


def _no_target(file: Path, target: str, known: Iterable[str]) -> RyeError:
    names = _names(known)
    similar = closest(target, names)
    guess = f" (did you mean '{similar[0]}'?)" if similar else ""
    return RyeError(
        f"{file} has no target '{target}'{guess}",
        hint=f"use one of {', '.join(names[:_LISTED])}" if names else "add it first",
    )


def _names(known: Iterable[str]) -> list[str]:
    """The targets that are meant to be called."""
    return [name for name in known if not name.startswith(".")]


def _inside(file: Path, project: Path) -> str:
    if not file.is_relative_to(project):
        raise RyeError(
            f"{file} is not in the project {project}, and could not be pinned",
            hint="call rye in the project that contains it",
        )
    return file.relative_to(project).as_posix()


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(_MAX_BYTES).decode(errors="replace")
    except OSError as error:
        raise RyeError(
            f"{file} cannot be read ({(error.strerror or '').lower()})", hint="check the path"
        ) from None


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "tool"
