"""The files that a tool brings along, verified like items before anything runs.

::

    verify_deps:
      enabled: true
      scope: anchor             # anchor, tool_dir, tool_siblings or tool_file
      recursive: true           # for anchor and tool_dir
      extensions: [.py]         # with their dot; by default every one that Rye can sign
      exclude_dirs: [tests]     # names of folders; by default caches and foreign packages

Every element that declares it is obeyed, so that a tool cannot switch off the check of its
runtime, nor by an anchor of its own: what that of the runtime would cover is verified as well. The
library of a runtime (``anchor.lib``) is code that runs, and is always verified, whatever its files
are called, but for hidden ones and those that are surely no code (``never`` in the table of
formats). What an interpreter would import from among these files, though nobody can sign it, is
refused.

Only ``__pycache__`` is left alone, since Python fills it by itself: a runtime whose Python imports
verified files must not take bytecode from there (``-X pycache_prefix=/dev/null``).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from pathlib import Path

from lilux.record import Record, replaced

from rye.context import Context
from rye.errors import AnchorError
from rye.executor.chain.anchor import Anchor, is_below, real_folder, resolve_anchor, runtime_lib
from rye.executor.chain.declaration import Declaration
from rye.formats import known_extensions, may_be_item
from rye.items.element import ChainElement

Judge = Callable[[str, Path, str], str]
"""Takes a path, the folder that it must lie in, and the name to call it by; gives the content hash
of a file that may run, or raises."""

SCOPES = ("anchor", "tool_dir", "tool_siblings", "tool_file")
MAX_FILES = 2_000
FILES_IN_A_STEP = 32
ENTRIES_IN_A_STEP = 256
MAX_ENTRIES = 50_000
"""Looked at in one walk, whatever their extension: a bound for anchors at a project's root."""

DEFAULT_EXCLUDED = (
    "__pycache__", ".git", ".hg", ".svn", ".venv", "venv", "node_modules", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".tox",
)  # fmt: skip
_BYTECODE, _BYTECODE_FOLDER = ".pyc", "__pycache__"
# Python and Node take these in the place of a source of that name, or where there is none.
_IMPORTED_UNSIGNED = frozenset((_BYTECODE, ".so", ".pyd", ".pth", ".node"))
_LIB = "{runtime_lib}/"
_KEYS = ("enabled", "scope", "recursive", "extensions", "exclude_dirs")


class _Walk(Record, frozen=True, kw_only=True):
    root: str
    """Without symbolic links."""
    recursive: bool
    extensions: frozenset[str]
    excluded: frozenset[str]
    where: str
    is_code: bool = False
    """Whether files of unknown extensions, or of none, are to be verified as well."""

    def covers(self, name: str) -> bool:
        """Whether a file of that name is verified."""
        extension = os.path.splitext(name)[1]  # noqa: PTH122 - a text
        if extension in self.extensions:
            return True
        return self.is_code and name[0] != "." and may_be_item(extension)


Steps = Generator[None, None, dict[str, str]]


def verify_dependencies(
    chain: Sequence[ChainElement], anchor: Anchor | None, judge: Judge
) -> Steps:
    """Content hashes of all dependencies, by path relative to the anchor (or the tool's folder);
    the runtime's library by ``{runtime_lib}/…``. The order does not depend on the file system.

    Done in steps of a few milliseconds, between which a loop can see to others: to be awaited by
    way of ``types.coroutine``, or run to its end. Raises what ``judge`` raises, and
    :class:`AnchorError` for a link that leads out, a file that would be imported and cannot be
    signed, a malformed declaration or too many files.
    """
    tool = chain[0].item_id
    names: dict[str, tuple[str, str]] = {}
    for batch in _named_files(chain, anchor):
        names.update(batch)
        yield
    if len(names) > MAX_FILES:
        raise AnchorError(
            f"'{tool}' has {len(names)} dependencies to verify, more than {MAX_FILES}",
            hint="narrow scope, extensions or exclude_dirs of its verify_deps",
        )
    roots = {root: Path(root) for root in {root for _, root in names.values()}}
    found = {}
    for number, name in enumerate(sorted(names), start=1):
        path, root = names[name]
        found[name] = judge(path, roots[root], f"{tool} → {name}")
        if number % FILES_IN_A_STEP == 0:
            yield
    return found


def _named_files(
    chain: Sequence[ChainElement], anchor: Anchor | None
) -> Iterator[dict[str, tuple[str, str]]]:
    """In batches: each file's name in a lockfile, its path, and the folder that it must lie in."""
    tool_path = chain[0].path
    if tool_path is None:
        return
    lib = runtime_lib(chain)
    if lib is not None:
        walk = _walk_of_lib(chain, str(lib))
        for batch in _files(walk):
            yield {f"{_LIB}{_relative(path, walk.root)}": (path, walk.root) for path in batch}
    base = str(anchor.path) if anchor is not None else _folder_of(tool_path)
    for level, element in enumerate(chain):
        if element.metadata.verify_deps is not None:
            spec = Declaration.of([element], "verify_deps", _KEYS)
            for covered in _anchors_for(level, chain, anchor):
                for batch, root in _declared_files(spec, tool_path, covered):
                    yield {_own_name(path, base): (path, root) for path in batch}


def _own_name(path: str, base: str) -> str:
    name = _relative(path, base)
    if name.startswith(_LIB):
        # Or a signed copy there would be verified in the place of what the library has.
        raise AnchorError(
            f"{path} would bear the name of a file of the runtime's library",
            hint="rename its folder",
        )
    return name


def _anchors_for(
    level: int, chain: Sequence[ChainElement], anchor: Anchor | None
) -> list[Anchor | None]:
    """The chain's anchor, and the one without what stands nearer to the tool than ``level``."""
    if all(element.metadata.anchor is None for element in chain[:level]):
        return [anchor]
    plain = [replaced(one, metadata=replaced(one.metadata, anchor=None)) for one in chain[:level]]
    own = resolve_anchor([*plain, *chain[level:]], _places_of(chain[0]))
    return [anchor] if own is None or (anchor and anchor.path == own.path) else [anchor, own]


def _places_of(tool: ChainElement) -> Context:
    """The project of a tool that lies in one. Another is covered by its own folder: without its
    runtime's anchor, nothing leads it into the project."""
    folder = tool.space.root.parent
    if tool.path is not None and tool.space.name != "project":
        folder = tool.path.parent
    return Context(project_path=folder, user_space=folder, system_space=folder, environ={})


def _declared_files(
    spec: Declaration, tool_path: Path, anchor: Anchor | None
) -> Iterator[tuple[list[str], str]]:
    walk = _walk_of(spec, tool_path, anchor)
    if walk is None or not spec.flag("enabled", default=True):
        return
    if spec.choice("scope", SCOPES) == "tool_file":
        yield [os.path.join(walk.root, tool_path.name)], walk.root  # noqa: PTH118 - texts here
        return
    for batch in _files(walk):
        yield batch, walk.root


def _walk_of(spec: Declaration, tool_path: Path, anchor: Anchor | None) -> _Walk | None:
    scope = spec.choice("scope", SCOPES)
    recursive = spec.flag("recursive", default=True) and scope in ("anchor", "tool_dir")
    extensions = _extensions(spec)
    excluded = spec.texts("exclude_dirs") if "exclude_dirs" in spec.values else DEFAULT_EXCLUDED
    if scope == "anchor":
        if anchor is None:
            return None
        root = str(anchor.path)
    else:
        root = _folder_of(tool_path)
    return _Walk(
        root=root,
        recursive=recursive,
        extensions=extensions,
        excluded=frozenset(excluded),
        where=f"verify_deps of {tool_path}",
    )


def _walk_of_lib(chain: Sequence[ChainElement], lib: str) -> _Walk:
    owner = next(one for one in chain if (one.metadata.anchor or {}).get("lib") is not None)
    return _Walk(
        root=lib,
        recursive=True,
        extensions=_signable(),
        excluded=frozenset(("__pycache__",)),
        where=f"the library of {owner.path}",
        is_code=True,
    )


def _extensions(spec: Declaration) -> frozenset[str]:
    extensions = spec.texts("extensions")
    for extension in extensions:
        if not extension.startswith(".") or "/" in extension:
            spec.refuse("extensions", f"{extension!r} has no dot in front", "write it as '.py'")
    return frozenset(extensions) or _signable()


@cache
def _signable() -> frozenset[str]:
    return frozenset(known_extensions())


def _files(walk: _Walk) -> Iterator[list[str]]:
    """The matching files below the root, in batches; a link that leads out is an error even if it
    is to a folder, since an interpreter would follow it."""
    batch: list[str] = []
    folders = [walk.root]
    looked_at = found = 0
    while folders:
        folder = folders.pop()
        for entry in _entries(folder):
            looked_at += 1
            extension = os.path.splitext(entry.name)[1]  # noqa: PTH122 - a text
            if entry.is_dir(follow_symlinks=False):
                if walk.recursive and entry.name not in walk.excluded:
                    folders.append(entry.path)
            elif extension in _IMPORTED_UNSIGNED and extension not in walk.extensions:
                _refuse_import(entry, extension, folder, walk)
            elif entry.is_symlink():
                batch += _linked(entry, walk)
            elif walk.covers(entry.name):
                batch.append(entry.path)
            if looked_at > MAX_ENTRIES or found + len(batch) > MAX_FILES:
                raise AnchorError(
                    f"{walk.where}: {walk.root} holds too many files to verify",
                    hint="narrow scope, extensions or exclude_dirs",
                )
            if looked_at % ENTRIES_IN_A_STEP == 0:
                found += len(batch)
                yield batch
                batch = []
    yield batch


def _refuse_import(entry: os.DirEntry[str], extension: str, folder: str, walk: _Walk) -> None:
    # What lies there is for the runtime to leave unread; see the module.
    if extension == _BYTECODE and folder.endswith(f"{os.sep}{_BYTECODE_FOLDER}"):
        return
    raise AnchorError(
        f"{walk.where}: {entry.path} could be imported, but cannot be signed",
        hint="remove it, or put its source there instead",
    )


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise AnchorError(
            f"{folder} cannot be searched for dependencies ({(error.strerror or '').lower()})",
            hint="check its permissions",
        ) from error


def _linked(entry: os.DirEntry[str], walk: _Walk) -> list[str]:
    matches = walk.covers(entry.name)
    target = os.path.realpath(entry.path)
    try:
        leads_to_folder = stat.S_ISDIR(os.stat(target).st_mode)  # noqa: PTH116 - a text
    except OSError:
        leads_to_folder = False
    if not matches and not (leads_to_folder and entry.name not in walk.excluded):
        return []
    inside = is_below(target, walk.root)
    # A folder that is left out of the walk must not come in again by another name.
    hidden = inside and not walk.excluded.isdisjoint(_relative(target, walk.root).split("/"))
    if not inside or hidden or (leads_to_folder and not walk.recursive):
        raise AnchorError(
            f"{walk.where}: a symbolic link leads {entry.path} out of what is verified",
            hint="put the file itself there, or remove the link",
        )
    return [] if leads_to_folder else [entry.path]


def _folder_of(tool: Path) -> str:
    return real_folder(tool.parent) or os.path.realpath(tool.parent)


def _relative(path: str, base: str) -> str:
    shorter = path[len(base) + 1 :] if is_below(path, base) else os.path.relpath(path, base)
    return shorter.replace(os.sep, "/")
