"""The files that a tool imports or loads, verified like items before anything runs.

::

    verify_deps:
      enabled: true
      scope: anchor             # anchor, tool_dir, tool_siblings or tool_file
      recursive: true           # for anchor and tool_dir
      extensions: [.py]         # with their dot; by default every one that Rye can sign
      exclude_dirs: [tests]     # names of folders; by default caches and installed packages

The declarations of all elements apply. A tool can therefore not switch off the check of its
runtime, and not evade it with another anchor: the files below the runtime's anchor are verified
as well. The library of a runtime (``anchor.lib``) is code that runs. It is always verified,
whatever its files are called, except for hidden files and for extensions that are never code
(``never`` in the table of formats). A file among these that an interpreter would import, but that
cannot be signed, is refused.

``__pycache__`` is skipped, since Python writes it. A runtime whose Python imports verified files
must not read bytecode from there (``-X pycache_prefix=/dev/null``).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from lilux.record import Record, replaced

from rye.context import Context
from rye.errors import AnchorError
from rye.executor.chain.anchor import Anchor, resolve_anchor, runtime_lib
from rye.executor.chain.declaration import Declaration
from rye.formats import known_extensions, may_be_item
from rye.items.element import ChainElement
from rye.spaces.containment import is_below, real_path

VerifyFile = Callable[[str, Path, str], str]
"""Takes a path, the folder that must contain it, and its name for messages; returns the content
hash of a file that may run, or raises."""

SCOPES = ("anchor", "tool_dir", "tool_siblings", "tool_file")
MAX_FILES = 2_000
MAX_ENTRIES = 50_000
"""Directory entries in one walk, of any extension: a bound for anchors at a project root."""
FEW_FILES = 32
FEW_ENTRIES = 256
"""What an event loop can wait for: a few milliseconds."""

DEFAULT_EXCLUDED = (
    "__pycache__", ".git", ".hg", ".svn", ".venv", "venv", "node_modules", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".tox",
)  # fmt: skip
_BYTECODE, _BYTECODE_FOLDER = ".pyc", "__pycache__"
# Python and Node import these instead of a source file of that name, or where there is none.
_IMPORTED_UNSIGNED = frozenset((_BYTECODE, ".so", ".pyd", ".pth", ".node"))
LIBRARY = "{runtime_lib}/"
"""How the name of a file in the runtime's library begins."""
PROJECT = "{project_path}/"
"""How the name of a file in ``pins`` begins; see ``project_files``."""
_KEYS = ("enabled", "scope", "recursive", "extensions", "exclude_dirs")


class ManyDependencies(Exception):  # noqa: N818 - not an error: the caller asked for few
    """More than ``FEW_FILES`` files or ``FEW_ENTRIES`` entries; none was verified."""


class _Walk(Record, frozen=True, kw_only=True):
    root: str
    """Without symbolic links."""
    recursive: bool
    extensions: frozenset[str]
    excluded: frozenset[str]
    where: str
    is_code: bool = False
    """True if files with an unknown extension, or without one, are verified as well."""
    few: bool = False
    """True if the walk ends with :class:`ManyDependencies` when there are many."""

    def covers(self, name: str) -> bool:
        """True if a file of that name is verified."""
        extension = os.path.splitext(name)[1]  # noqa: PTH122 - a text
        if extension in self.extensions:
            return True
        return self.is_code and name[0] != "." and may_be_item(extension)


def verify_dependencies(
    chain: Sequence[ChainElement],
    anchor: Anchor | None,
    verify: VerifyFile,
    *,
    few: bool = False,
) -> dict[str, str]:
    """Verify all dependencies; return their content hashes by name.

    Raises the errors of ``verify`` and of :func:`dependency_files`.
    """
    return verified_hashes(dependency_files(chain, anchor, few=few), chain[0].item_id, verify)


def dependency_files(
    chain: Sequence[ChainElement], anchor: Anchor | None, *, few: bool = False
) -> dict[str, tuple[str, str]]:
    """Find all dependencies: by name, the path and the folder that must contain it.

    The name is the path relative to the anchor (or to the tool's folder), and ``{runtime_lib}/…``
    in the runtime's library. The names are sorted. Raises :class:`AnchorError` for a link that
    leads out, a file that would be imported and cannot be signed, a malformed declaration or too
    many files. With ``few`` it raises :class:`ManyDependencies` before it would take long.
    """
    if all(one.metadata.anchor is None and one.metadata.verify_deps is None for one in chain):
        return {}
    names = dict(_named_files(chain, anchor, few=few))
    if few and len(names) > FEW_FILES:
        raise ManyDependencies
    if len(names) > MAX_FILES:
        raise AnchorError(
            f"'{chain[0].item_id}' has {len(names)} dependencies to verify, more than {MAX_FILES}",
            hint="narrow scope, extensions or exclude_dirs of its verify_deps",
        )
    return dict(sorted(names.items()))


def verified_hashes(
    files: Mapping[str, tuple[str, str]], tool: str, verify: VerifyFile
) -> dict[str, str]:
    """Verify the files that :func:`dependency_files` found; return their content hashes."""
    roots = {root: Path(root) for root in {root for _, root in files.values()}}
    return {
        name: verify(path, roots[root], f"{tool} → {name}") for name, (path, root) in files.items()
    }


def _named_files(
    chain: Sequence[ChainElement], anchor: Anchor | None, *, few: bool
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each file's name in a lockfile, its path, and the folder that must contain it."""
    tool_path = chain[0].path
    if tool_path is None:
        return
    lib = runtime_lib(chain)
    if lib is not None:
        walk = replaced(_walk_of_lib(chain, str(lib)), few=few)
        for path in _files(walk):
            yield f"{LIBRARY}{_relative(path, walk.root)}", (path, walk.root)
    base = str(anchor.path) if anchor is not None else _folder_of(tool_path)
    for level, element in enumerate(chain):
        if element.metadata.verify_deps is not None:
            spec = Declaration.of([element], "verify_deps", _KEYS)
            for covered in _anchors_for(level, chain, anchor):
                for path, root in _declared_files(spec, tool_path, covered, few=few):
                    yield name_below(path, base), (path, root)


def name_below(path: str, base: str) -> str:
    """The name of a dependency. Raises :class:`AnchorError` for one that means another file."""
    name = _relative(path, base)
    if name.startswith((LIBRARY, PROJECT)):
        # Otherwise a signed copy there would be verified instead of that file.
        raise AnchorError(
            f"{path} has the name of a file in the runtime's library or in the project",
            hint="rename its folder",
        )
    return name


def _anchors_for(
    level: int, chain: Sequence[ChainElement], anchor: Anchor | None
) -> list[Anchor | None]:
    """The chain's anchor, and the anchor without the elements nearer to the tool than ``level``."""
    if all(element.metadata.anchor is None for element in chain[:level]):
        return [anchor]
    plain = [replaced(one, metadata=replaced(one.metadata, anchor=None)) for one in chain[:level]]
    own = resolve_anchor([*plain, *chain[level:]], _places_of(chain[0]))
    return [anchor] if own is None or (anchor and anchor.path == own.path) else [anchor, own]


def _places_of(tool: ChainElement) -> Context:
    """The project of a project tool. For any other tool, its folder: without its runtime's
    anchor, it does not refer to the project."""
    folder = tool.resolution.space.root.parent
    if tool.path is not None and tool.space != "project":
        folder = tool.path.parent
    return Context(project_path=folder, user_space=folder, system_space=folder, environ={})


def _declared_files(
    spec: Declaration, tool_path: Path, anchor: Anchor | None, *, few: bool
) -> Iterator[tuple[str, str]]:
    """Paths, each with the folder that must contain it."""
    walk = _walk_of(spec, tool_path, anchor)
    if walk is None or not spec.flag("enabled", default=True):
        return
    if spec.choice("scope", SCOPES) == "tool_file":
        yield os.path.join(walk.root, tool_path.name), walk.root  # noqa: PTH118 - texts here
        return
    for path in _files(replaced(walk, few=few)):
        yield path, walk.root


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
            problem = f"{extension!r} does not start with a dot"
            spec.refuse("extensions", problem, "write it as '.py'")
    return frozenset(extensions) or _signable()


@cache
def _signable() -> frozenset[str]:
    return frozenset(known_extensions())


def _files(walk: _Walk) -> list[str]:
    """The matching files below the root.

    A link that leads out is an error, even to a folder: an interpreter would follow it.
    """
    found: list[str] = []
    folders = [walk.root]
    seen = 0
    while folders:
        folder = folders.pop()
        for entry in _entries(folder, walk):
            seen += 1
            extension = os.path.splitext(entry.name)[1]  # noqa: PTH122 - a text
            if entry.is_dir(follow_symlinks=False):
                if walk.recursive and entry.name not in walk.excluded:
                    folders.append(entry.path)
            elif extension in _IMPORTED_UNSIGNED and extension not in walk.extensions:
                _refuse_import(entry, extension, folder, walk)
            elif entry.is_symlink():
                found += _linked(entry, walk)
            elif walk.covers(entry.name):
                found.append(entry.path)
            if walk.few and seen > FEW_ENTRIES:
                raise ManyDependencies
            if seen > MAX_ENTRIES or len(found) > MAX_FILES:
                raise AnchorError(
                    f"{walk.where}: {walk.root} contains too many files to verify",
                    hint="narrow scope, extensions or exclude_dirs",
                )
    return found


def _refuse_import(entry: os.DirEntry[str], extension: str, folder: str, walk: _Walk) -> None:
    # The runtime must not read these; see the module.
    if extension == _BYTECODE and folder.endswith(f"{os.sep}{_BYTECODE_FOLDER}"):
        return
    raise AnchorError(
        f"{walk.where}: {entry.path} could be imported, but cannot be signed",
        hint="remove it, or put its source there instead",
    )


def _entries(folder: str, walk: _Walk) -> list[os.DirEntry[str]]:
    """All entries, or one more than a walk may see."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, (FEW_ENTRIES if walk.few else MAX_ENTRIES) + 1))
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
    # An excluded folder must not be included under another name.
    hidden = inside and not walk.excluded.isdisjoint(_relative(target, walk.root).split("/"))
    if not inside or hidden or (leads_to_folder and not walk.recursive):
        raise AnchorError(
            f"{walk.where}: a symbolic link leads {entry.path} out of what is verified",
            hint="put the file itself there, or remove the link",
        )
    return [] if leads_to_folder else [entry.path]


def _folder_of(tool: Path) -> str:
    return real_path(str(tool.parent))


def _relative(path: str, base: str) -> str:
    shorter = path[len(base) + 1 :] if is_below(path, base) else os.path.relpath(path, base)
    return shorter.replace(os.sep, "/")
