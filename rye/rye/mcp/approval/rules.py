"""What agents may run without asking: ``agents`` in the user's config, and options of the server.

::

    agents:
      - tools: ["rye/fs/read", "notes/*"]
        allow: always
      - tools: ["*"]
        when: {destructive: true}
        allow: ask

The first rule that matches decides; without one, a tool may run. A project has a config of the same
name, which is not read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

from rye.cache.disk import DiskCache
from rye.context import Context
from rye.errors import PermissionsError
from rye.items.user_config import CORRECT_IT, UserConfig
from rye.mcp.settings import ServerSettings

ALWAYS: Final = "always"
ASK: Final = "ask"
SESSION: Final = "session"
NEVER: Final = "never"
CHOICES: Final = (ALWAYS, ASK, SESSION, NEVER)

HINTS: Final = ("read_only", "destructive", "idempotent", "open_world")
_SECTION = "agents"
_KEYS = ("tools", "when", "allow")


class Rule(NamedTuple):
    """Decides about some tools."""

    tools: tuple[str, ...]
    """Ids and globs."""
    when: Mapping[str, bool]
    """The hints that a tool must have."""
    allow: str
    source: str
    """Where the rule is, for the user."""

    def covers(self, item_id: str, hints: Mapping[str, bool]) -> bool:
        """True if the rule is for this tool."""
        if any(hints[name] is not wanted for name, wanted in self.when.items()):
            return False
        return any(fnmatchcase(item_id, glob) for glob in self.tools)


class Decision(NamedTuple):
    """What is allowed, and by which rule."""

    allow: str
    source: str = ""


class AgentRules:
    """The rules of one server; those of the config are read again when the file changes."""

    def __init__(
        self, context: Context, settings: ServerSettings, disk_cache: DiskCache | None = None
    ) -> None:
        self._config = UserConfig(context, disk_cache)
        self._of_options = _option_rules(settings)
        self._source: object = None
        self._rules: tuple[Rule, ...] = ()

    def decide(self, item_id: str, annotations: Mapping[str, Any]) -> Decision:
        """Decide about a tool by its full id and its hints.

        Raises :class:`PermissionsError` if the config cannot be used.
        """
        rules = self.current()
        if not rules:
            return Decision(ALWAYS)
        hints = hints_of(annotations)
        for rule in rules:
            if rule.covers(item_id, hints):
                return Decision(rule.allow, rule.source)
        return Decision(ALWAYS)

    def current(self) -> tuple[Rule, ...]:
        """Return the rules in their order. Raises :class:`PermissionsError`."""
        config = self._config.current()
        if config is not self._source:
            self._rules = (*self._of_options, *_config_rules(config, self._config.path))
            self._source = config
        return self._rules


def hints_of(annotations: Mapping[str, Any]) -> dict[str, bool]:
    """Return the hints of a tool; one that it does not give is as MCP defines it.

    A tool that says nothing may be destructive and may reach anything.
    """
    read_only = annotations.get("read_only") is True
    given = {"read_only": False, "destructive": not read_only, "idempotent": False}
    given["open_world"] = True
    known = {name: annotations[name] for name in HINTS if isinstance(annotations.get(name), bool)}
    return {**given, **known}


def _option_rules(settings: ServerSettings) -> tuple[Rule, ...]:
    """The rules of the options: the longest glob decides, and of two equal ones the stricter."""
    given = [(NEVER, "--deny", settings.deny), (ASK, "--ask", settings.ask)]
    given.append((ALWAYS, "--allow", settings.allow))
    rules = [Rule((glob,), {}, allow, option) for allow, option, globs in given for glob in globs]
    return tuple(sorted(rules, key=lambda rule: -len(rule.tools[0])))


def _config_rules(config: Mapping[str, Any], path: Path) -> list[Rule]:
    section = config.get(_SECTION)
    if section is None:
        return []
    if not isinstance(section, list):
        raise _refuse(path, "a list of rules", _SECTION)
    return [_rule(one, f"{_SECTION}[{at}]", path) for at, one in enumerate(section)]


def _rule(value: object, where: str, path: Path) -> Rule:
    if not isinstance(value, dict) or set(value) - set(_KEYS):
        raise _refuse(path, f"only {', '.join(_KEYS)}", where)
    tools, when, allow = [value.get(key) for key in _KEYS]
    if not isinstance(tools, list) or not tools or not all(isinstance(one, str) for one in tools):
        raise _refuse(path, "a list of tools, such as rye/bash/*,", f"{where}.tools")
    when = {} if when is None else when
    if not isinstance(when, dict) or set(when) - set(HINTS):
        raise _refuse(path, f"only {', '.join(HINTS)}", f"{where}.when")
    if not all(isinstance(one, bool) for one in when.values()):
        raise _refuse(path, "true or false", f"{where}.when")
    if allow not in CHOICES:
        raise _refuse(path, f"one of {', '.join(CHOICES)}", f"{where}.allow")
    return Rule(tuple(tools), when, allow, f"{where} in {path}")


def _refuse(path: Path, expected: str, where: str) -> PermissionsError:
    return PermissionsError(f"{path}: expected {expected} in '{where}'", hint=CORRECT_IT)
