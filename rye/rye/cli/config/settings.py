"""The settings as records, in the order in which a call meets them. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lilux.primitives.errors import LiluxError

from rye.cli.invocation import Invocation
from rye.context import Context
from rye.errors import RyeError

DEFAULT = "default"
ENVIRONMENT = "environment"
_HIDDEN = "(set, not shown)"


class Setting(NamedTuple):
    """One setting."""

    name: str
    value: Any
    """A JSON value; ``None`` if it is not set."""
    source: str
    """Where the value comes from: a file, the environment, an option, or ``default``."""
    about: str
    problem: str = ""
    """Why the value is not used, and what to do; empty if it is used."""


class Variable(NamedTuple):
    """A variable of the environment that Rye or a tool of Rye reads."""

    about: str
    default: str = ""
    secret: bool = False


VARIABLES = {
    "USER_SPACE": Variable("the directory that contains your .ai; by default your home"),
    "RYE_APPROVE_PROJECT": Variable("the digest of unsigned parts that this process may use"),
    "RYE_MCP_TOKEN": Variable("the token for clients of `rye mcp --http`", secret=True),
    "RYE_FS_ALLOW": Variable("paths that rye/fs/* may use beyond the project"),
    "RYE_GIT_ALLOW": Variable("settings and options that rye/git/git may use"),
    "NO_COLOR": Variable("turns colours off"),
}
"""``tests`` check that this lists every variable with the prefix ``RYE_`` in the code."""

DEFAULTS: dict[str, tuple[Any, str]] = {
    "permissions.unenforced": ("refuse", "what to do where permissions cannot be enforced"),
    "grants": ([], "what tools may do beyond their permissions"),
    "warm.enabled": (True, "keep processes ready for Python tools that are called often"),
    "warm.idle_seconds": (120, "how long such a process waits for the next call"),
    "warm.processes": (8, "how many there may be"),
    "warm.memory": ("512MiB", "how much memory they may have together"),
    "agents": ([], "which tools agents may run without asking you; see docs/mcp.md"),
    "history.enabled": (True, "whether calls are recorded"),
    "history.keep.parameters": ([], "tools whose parameters are recorded with their values"),
    "history.keep.output": ([], "tools whose output is recorded"),
    "history.retention.days": (90, "after how many days a record is removed"),
    "history.retention.runs": (1_000_000, "how many records are kept"),
    "history.retention.size": ("2GiB", "how large the history may become"),
    "mcp.max_output": (24_000, "characters of a result that an agent reads at most"),
}
"""The settings of ``~/.ai/config.yaml`` that have a value even if the file does not name them."""


def settings(invocation: Invocation) -> Iterator[Setting]:
    """Yield every setting. A file that cannot be read is a problem, not an exception."""
    context = invocation.context
    yield from _directories(invocation)
    yield _helper()
    yield _key(context)
    yield from _of_user(context)
    yield from _of_project(context)
    yield from _of_environment(context.environ)
    yield from _interpreters(context)


def _directories(invocation: Invocation) -> Iterator[Setting]:
    from rye.spaces.bundles import system_spaces

    context = invocation.context
    project = context.project_path
    if invocation.project_option is not None:
        source = "--project"
    elif (project / ".ai").is_dir():
        source = "the nearest directory that contains .ai"
    else:
        source = "the current directory, because none above contains .ai"
    yield Setting("project", str(project), source, "the directory whose tools are found first")
    by_variable = bool(context.environ.get("USER_SPACE"))
    yield Setting(
        "user space",
        str(context.user_space),
        f"{ENVIRONMENT}, USER_SPACE" if by_variable else "your home",
        "the directory whose .ai has your key, your config and your tools",
    )
    for space in system_spaces(context):
        yield Setting("system space", str(space.root), f"package {space.bundle}", "installed tools")


def _helper() -> Setting:
    from lilux.primitives.subprocess.binary import find_helper

    about = "the program that starts and supervises processes"
    try:
        path = find_helper()
    except LiluxError as error:
        return Setting("lilux-proc", None, DEFAULT, about, str(error))
    on_path = os.path.dirname(path) in os.environ.get("PATH", "").split(os.pathsep)  # noqa: PTH120 - texts
    return Setting("lilux-proc", path, "PATH" if on_path else "beside the interpreter", about)


def _key(context: Context) -> Setting:
    from rye.trust.key_source import read_own_key
    from rye.trust.store import TrustStore

    path = TrustStore(context, spaces=()).key_folder / "public_key.pem"
    about = "the fingerprint of the key that you sign with"
    if not os.path.lexists(path):
        return Setting("key", None, DEFAULT, f"{about}; the first signature creates it")
    entry = read_own_key(path)
    return Setting("key", entry.fingerprint or None, str(path), about, entry.problem)


# Files


def _of_user(context: Context) -> Iterator[Setting]:
    from rye.items.user_config import UserConfig
    from rye.mcp.approval.rules import AgentRules
    from rye.mcp.budget import budget_of
    from rye.mcp.settings import ServerSettings
    from rye.permissions.settings import UserSettings
    from rye.recording.settings import HistoryConfig

    config = UserConfig(context)
    content: Mapping[str, Any] = {}
    problem = ""
    try:
        content = config.current()
        UserSettings(context).current()
        HistoryConfig(context).current()
        budget_of(config, None)
        AgentRules(context, ServerSettings()).current()
    except RyeError as error:
        problem = str(error)
    given = dict(_flat(content))
    for name, (value, about) in DEFAULTS.items():
        if name in given:
            yield Setting(name, given.pop(name), str(config.path), about, problem)
        else:
            yield Setting(name, value, DEFAULT, about, problem)
    for name, value in given.items():
        yield Setting(name, value, str(config.path), "", problem)


def _of_project(context: Context) -> Iterator[Setting]:
    from rye.items.reader import read_item
    from rye.mcp.featured import parse_featured
    from rye.trust.project_approval import ProjectApproval, hint_for, unsigned_parts

    path = context.config_path
    about = "tools that `rye mcp` lists by name"
    if not os.path.lexists(path):
        yield Setting("mcp.featured", [], DEFAULT, about)
        return
    featured: list[str] = []
    try:
        content = read_item(path, path.parent).content
        featured = list(parse_featured(content, path).patterns)
        reason = ProjectApproval(context).why_not(unsigned_parts(context, config=content))
        problem = reason and f"{reason}; {hint_for(reason)}"
    except (RyeError, LiluxError) as error:
        problem = str(error)
    yield Setting("mcp.featured", featured, str(path), about, problem)


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


# The environment


def _of_environment(environ: Mapping[str, str]) -> Iterator[Setting]:
    for name, variable in VARIABLES.items():
        value = environ.get(name)
        shown = _HIDDEN if value and variable.secret else value
        yield Setting(name, shown, DEFAULT if value is None else ENVIRONMENT, variable.about)


def _interpreters(context: Context) -> Iterator[Setting]:
    """The program of each runtime, by the variable that chooses it."""
    from rye.doctor.runtimes import runtime_interpreters

    for found in runtime_interpreters(context):
        given = context.environ.get(found.variable)
        inside = found.value and Path(found.value).is_relative_to(context.project_path)
        source = ENVIRONMENT if given else "the project" if inside else "PATH"
        about = f"the program that runs tools of {found.runtime}"
        yield Setting(found.variable, found.value or None, source, about, found.problem)
