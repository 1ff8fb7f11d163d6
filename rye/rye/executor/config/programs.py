"""The programs that a chain starts: those outside the project, and what some read by themselves.

Both are information. A lockfile records the paths of programs, but a changed program of the machine
is not a mismatch. The table of programs that read files is advice for authors, in ``rye check``; it
protects nothing and need not be complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from lilux.files.search_path import find_program
from lilux.record import Record

from rye.context import Context
from rye.executor.chain.anchor import Anchor
from rye.executor.chain.dependencies import PROJECT
from rye.executor.config.author_texts import UNKNOWN, author_texts
from rye.executor.config.merge import merge_configs, starts_a_process
from rye.executor.config.named_files import words_of
from rye.items.element import ChainElement
from rye.spaces.containment import is_below

_READ_BY = {
    "ant": ("build.xml",),
    "bazel": ("MODULE.bazel", "WORKSPACE", "BUILD", "BUILD.bazel"),
    "bun": ("package.json",),
    "bundle": ("Gemfile",),
    "cargo": ("Cargo.toml", "build.rs", ".cargo/config.toml"),
    "cmake": ("CMakeLists.txt",),
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "docker": ("Dockerfile",),
    "go": ("go.mod",),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle"),
    "invoke": ("tasks.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "mvn": ("pom.xml",),
    "ninja": ("build.ninja",),
    "nox": ("noxfile.py",),
    "npm": ("package.json",),
    "npx": ("package.json",),
    "pnpm": ("package.json",),
    "poetry": ("pyproject.toml",),
    "pre-commit": (".pre-commit-config.yaml",),
    "pytest": ("conftest.py", "pyproject.toml", "pytest.ini"),
    "rake": ("Rakefile",),
    "scons": ("SConstruct",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini", "pyproject.toml"),
    "uv": ("pyproject.toml",),
    "yarn": ("package.json",),
}


class UnseenFiles(Record, frozen=True):
    """A program of a chain, and the files of the project that it reads unpinned."""

    program: str
    names: tuple[str, ...]


def outside_programs(
    chain: Sequence[ChainElement],
    anchor: Anchor | None,
    context: Context,
    env: Mapping[str, str],
) -> tuple[str, ...]:
    """The paths of the programs outside the project that the authors of a chain name.

    ``env`` is the environment of the job: it has the interpreters and ``PATH``.
    """
    if not starts_a_process(chain):
        return ()
    project = str(context.project_path)
    found: dict[str, None] = {}
    for one in author_texts(merge_configs(chain, anchor, context), env):
        path: str | None = one.text
        if one.key == "command" and "/" not in one.text:
            path = find_program(one.text, env.get("PATH", "").split(os.pathsep))
        elif one.key not in ("command", "args") or UNKNOWN in one.text:
            continue
        if path and not is_below(path, project) and _is_program(path):
            found[path] = None
    return tuple(found)


def unseen_files(
    chain: Sequence[ChainElement],
    anchor: Anchor | None,
    context: Context,
    dependencies: Mapping[str, str],
) -> Iterator[UnseenFiles]:
    """What make and its kin read in the project without being asked, as far as it is not pinned."""
    if not starts_a_process(chain):
        return
    programs: dict[str, None] = {}
    for one in author_texts(merge_configs(chain, anchor, context)):
        for word in words_of(one.text):
            programs[word.rpartition("/")[2]] = None
    for program in programs:
        names = [
            name
            for name in _READ_BY.get(program, ())
            if f"{PROJECT}{name}" not in dependencies and (context.project_path / name).is_file()
        ]
        if names:
            yield UnseenFiles(program, tuple(names))


def _is_program(path: str) -> bool:
    absolute = os.path.isabs(path)  # noqa: PTH117 - a text
    return absolute and os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - a text
