"""Check ``.ai/config.yaml`` of the project and of the user for sections that nothing reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rye.authoring.report import Report
from rye.context import CONFIG_NAME, Context
from rye.errors import RyeError
from rye.items.reader import read_item
from rye.suggestions import closest, one_typo_away

# Section → its keys; `None` if the section checks them itself.
PROJECT_SECTIONS: Mapping[str, tuple[str, ...] | None] = {"mcp": ("featured",)}
USER_SECTIONS: Mapping[str, tuple[str, ...] | None] = {
    "agents": None,
    "grants": None,
    "history": None,
    "mcp": None,
    "permissions": ("unenforced",),
    "warm": None,
}


def check_settings(context: Context) -> Iterator[Report]:
    """One report for each of the files that exists."""
    project, user = context.config_path, context.user_space / ".ai" / CONFIG_NAME
    yield from _report(project, PROJECT_SECTIONS if project != user else USER_SECTIONS)
    if project != user:
        yield from _report(user, USER_SECTIONS)


def _report(path: Path, sections: Mapping[str, tuple[str, ...] | None]) -> Iterator[Report]:
    if not os.path.lexists(path):
        return
    try:
        errors = tuple(_errors(path, sections))
    except (RyeError, UnicodeDecodeError) as error:
        errors = (str(error),)
    yield Report(str(path), errors)


def _errors(path: Path, sections: Mapping[str, tuple[str, ...] | None]) -> Iterator[str]:
    from rye.items.strict_yaml import load_mapping

    content = read_item(path, path.parent).content
    if all(not line.strip() or line.lstrip().startswith(b"#") for line in content.splitlines()):
        return
    values, lines = load_mapping(content.decode(), path, hint="correct it")
    for name, value in values.items():
        where = f"{path}:{lines[name]}"
        if name not in sections:
            yield _unknown(where, name, tuple(sections))
        else:
            yield from _unknown_keys(where, name, value, sections[name])


def _unknown_keys(
    where: str, section: str, value: Any, known: tuple[str, ...] | None
) -> Iterator[str]:
    if known is None or value is None:
        return
    if not isinstance(value, Mapping):
        yield f"{where}: expected a mapping in '{section}'; correct it"
        return
    for key in value:
        if key not in known:
            yield _unknown(where, f"{section}.{key}", known)


def _unknown(where: str, place: str, known: tuple[str, ...]) -> str:
    name = place.rpartition(".")[2]
    meant = one_typo_away(name, known) or next(iter(closest(name, known)), None)
    if meant is not None:
        return f"{where}: unknown key '{place}' (did you mean '{meant}'?); correct it"
    return f"{where}: unknown key '{place}', which nothing reads; remove it"
