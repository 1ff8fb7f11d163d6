"""The files of the project that a chain's authors name in its command line.

A command, an argument or any other text in the config of a subprocess that is the path of an
existing file inside the project is code or input that decides what runs. It has to be an element
of the chain, a verified dependency, or listed in ``pins``; otherwise the chain does not run.

Only text that an author wrote is considered (``author_texts``); what a caller passes is not. Every
word of a longer text, such as a shell script, counts, unless a shell writes to it (``> log.txt``);
its mode does not matter, since the checkout chooses it. A path may start in the working directory,
in a folder that the text names (``cd sub && ./run``), or in a folder of the author's ``PATH``. What
a program reads by itself cannot be seen here.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence

from lilux.record import Record

from rye.context import Context
from rye.errors import UnpinnedError, UnsafePathError
from rye.executor.caches import BoundedDict
from rye.executor.chain.anchor import Anchor, runtime_lib
from rye.executor.chain.dependencies import LIBRARY, PROJECT
from rye.executor.config.author_texts import (
    UNKNOWN,
    AuthorText,
    author_texts,
    interpreters,
    search_path,
    working_directories,
)
from rye.executor.config.merge import merge_configs, starts_a_process
from rye.items.element import ChainElement
from rye.spaces.bundles import OWN
from rye.spaces.containment import is_below, real_path
from rye.spaces.folders import Stamp, are_unchanged, is_settled, stamp_of

# A word, and whether a shell writes to it.
_WORD = rf"""(>\s*["']?)?([\w./+@%~{UNKNOWN}-]+)"""
# What a shell puts before a path: $PWD/, "$(pwd)"/.
_EXPANDED = r"""(?:\$(?:\w+|\([^()]*\))|`[^`]*`)["']?/"""
_MAX_NAME = 255
"""No file has a longer name, but text may."""


class NamedFile(Record, frozen=True):
    """A file of the project, relative to it, and the key of ``config`` that names it."""

    key: str
    name: str
    path: str
    """Without symbolic links."""


class _Texts(Record, frozen=True):
    """What the authors of a chain wrote; nothing in it depends on files or on a call."""

    chain: Sequence[ChainElement]
    anchor: tuple[object, ...]
    """What the texts take from the anchor."""
    folders: tuple[str, ...]
    """The folders in which relative paths may start, perhaps with unknown parts."""
    words: tuple[tuple[str, str, bool], ...]
    """The key of ``config``, a word that may be a path, and whether its file ships with Rye."""
    search_path: tuple[str, ...]


class _Paths(Record, frozen=True):
    """The paths inside the project that a chain may mean; none of these files need exist."""

    texts: _Texts
    project: str
    """Without symbolic links, like ``own``."""
    own: frozenset[str]
    """The files of the chain itself."""
    paths: tuple[tuple[str, str], ...]
    """The key of ``config``, and the path of a file, or of a folder in which words may start."""
    words: tuple[tuple[str, str], ...]
    """The key of ``config``, and a relative path that may start in such a folder."""
    search_path: tuple[str, ...]
    """The folders in which the author searches for programs."""
    caller_chooses_cwd: bool


class _Found(Record, frozen=True):
    paths: _Paths
    files: tuple[NamedFile, ...]
    folders: tuple[tuple[str, Stamp], ...]


class NamedFiles:
    """Refuses chains that name unpinned files. The search is repeated if a folder changed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._texts: dict[str, _Texts] = BoundedDict()
        self._paths: dict[str, _Paths] = BoundedDict()
        self._found: dict[str, _Found] = BoundedDict()

    def require_pinned(
        self,
        chain: Sequence[ChainElement],
        anchor: Anchor | None,
        dependencies: Mapping[str, str],
        cwd: str | None = None,
    ) -> bool:
        """Raise :class:`UnpinnedError` for the first file that nothing covers.

        ``dependencies`` has the names of verified and pinned files. Returns true if the working
        directory, from which relative paths start, is only known in a call; the call then has to
        pass it as ``cwd``.
        """
        if not starts_a_process(chain):
            return False
        texts = self._texts_of(chain, anchor)
        if cwd is None:
            paths = self._paths_of(texts)
            files = self._files_at(paths)
        else:
            paths = _paths(texts, self._context, cwd)
            files = tuple(_Search(paths).run())
        if files:
            covered = _covered(chain, anchor, dependencies, str(self._context.project_path))
            for file in files:
                if file.path not in covered:
                    raise _unpinned(file, chain, self._context)
        return paths.caller_chooses_cwd

    def _texts_of(self, chain: Sequence[ChainElement], anchor: Anchor | None) -> _Texts:
        known = self._texts.get(chain[0].item_id)
        if known is None or known.chain is not chain or known.anchor != _places(anchor):
            known = self._texts[chain[0].item_id] = _texts(chain, anchor, self._context)
        return known

    def _paths_of(self, texts: _Texts) -> _Paths:
        item_id = texts.chain[0].item_id
        known = self._paths.get(item_id)
        if known is None or known.texts is not texts:
            known = self._paths[item_id] = _paths(texts, self._context)
        return known

    def _files_at(self, paths: _Paths) -> tuple[NamedFile, ...]:
        item_id = paths.texts.chain[0].item_id
        found = self._found.get(item_id)
        if found is not None and found.paths is paths and are_unchanged(found.folders):
            return found.files
        search = _Search(paths)
        files = tuple(search.run())
        if search.settled:
            self._found[item_id] = _Found(paths, files, tuple(search.stamps.items()))
        return files


def _texts(chain: Sequence[ChainElement], anchor: Anchor | None, context: Context) -> _Texts:
    merged = merge_configs(chain, anchor, context)
    # Words such as `run` in a runtime that ships with Rye are not files of the project.
    shipped = {
        str(one.path)
        for one in chain
        if one.resolution.space.bundle == OWN and one.metadata.tool_type == "runtime"
    }
    words = [
        (one.key, word, merged.files.get(one.key) in shipped)
        for one in (*author_texts(merged), *interpreters(chain))
        for word in _words(one)
    ]
    return _Texts(
        chain=chain,
        anchor=_places(anchor),
        folders=tuple(working_directories(merged)),
        words=tuple(dict.fromkeys(words)),
        search_path=tuple([folder for folder in search_path(merged) if UNKNOWN not in folder]),
    )


def _paths(texts: _Texts, context: Context, cwd: str = "") -> _Paths:
    project = str(context.project_path)
    real_project = real_path(project)
    folders = ["", cwd, *texts.folders]
    bases = dict.fromkeys(
        # Like the process gets it, but without a slash at the end.
        os.path.join(project, folder).rstrip("/")  # noqa: PTH118 - a text
        for folder in folders
        if UNKNOWN not in folder
    )
    paths: dict[tuple[str, str], None] = {}
    words: dict[tuple[str, str], None] = {}
    for key, word, is_shipped in texts.words:
        if not word.startswith("/"):
            if is_shipped:
                continue
            words[key, word] = None
        if key == "command" and "/" not in word:
            continue  # looked up on PATH
        for base in bases:
            path = os.path.join(base, word)  # noqa: PTH118 - a text
            plain = os.path.normpath(path)
            if is_below(plain, project) or is_below(real_path(plain), real_project):
                paths[key, path] = None
    own = [one.path for one in texts.chain if one.path is not None]
    return _Paths(
        texts=texts,
        project=real_project,
        own=frozenset(real_path(str(path)) for path in own),
        paths=tuple(paths),
        words=tuple(words),
        search_path=tuple(
            os.path.join(base, folder)  # noqa: PTH118 - a text
            for folder in texts.search_path
            for base in bases
        ),
        caller_chooses_cwd=any(UNKNOWN in folder for folder in folders),
    )


def _places(anchor: Anchor | None) -> tuple[object, ...]:
    return () if anchor is None else (anchor.path, anchor.cwd)


class _Search:
    """One search for the files at these paths, and what its result depends on."""

    def __init__(self, paths: _Paths) -> None:
        self._paths = paths
        self.stamps: dict[str, Stamp] = {}
        self.settled = True
        """False if the result could change without a change of a folder."""

    def run(self) -> Iterator[NamedFile]:
        found: dict[str, str] = {}
        folders = dict.fromkeys(self._paths.search_path)
        for key, path in self._paths.paths:
            mode = self._mode(path)
            if stat.S_ISDIR(mode):
                folders[path] = None
            elif stat.S_ISREG(mode):
                self._add(key, path, found)
        for folder in folders:
            for key, word in self._paths.words:
                path = f"{folder}/{word}"
                if stat.S_ISREG(self._mode(path)):
                    self._add(key, path, found)
        self.settled = self.settled and all(is_settled(stamp) for stamp in self.stamps.values())
        for path, key in found.items():
            yield NamedFile(key, os.path.relpath(path, self._paths.project), path)

    def _add(self, key: str, path: str, found: dict[str, str]) -> None:
        """Add the real path of a file that the chain may not run unpinned."""
        real = real_path(path)
        if real in self._paths.own:
            return
        plain = os.path.normpath(path)
        if is_below(real, self._paths.project):
            found.setdefault(real, key)
        elif is_below(plain, self._paths.project):
            found.setdefault(plain, key)  # a link out of the project is named by its own place

    def _mode(self, path: str) -> int:
        """The mode of a file; 0 if there is none. Remembers what that depends on."""
        folder = os.path.dirname(path)  # noqa: PTH120 - a text
        try:
            if folder not in self.stamps:
                self.stamps[folder] = stamp_of(folder)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                self.settled = False
                status = os.stat(path)  # noqa: PTH116 - a text
        except UnsafePathError:
            self.settled = False  # a folder that cannot be searched
        except OSError:
            pass
        else:
            return status.st_mode
        return 0


def _words(one: AuthorText) -> Iterator[str]:
    """The paths that a text may contain."""
    text = one.text
    whole = [text]
    if "=" in text:
        whole.append(text.partition("=")[2])
    if text[:1] == "-" and text[1:2] != "-":
        whole.append(text[2:])
    for word in dict.fromkeys((*whole, *words_of(text))):
        # A part next to an unknown value is not a whole path.
        if word and UNKNOWN not in word and max(map(len, word.split("/"))) <= _MAX_NAME:
            yield word


def words_of(text: str) -> Iterator[str]:
    """The words of a longer text, except those that a shell writes to."""
    for written, word in re.findall(_WORD, re.sub(_EXPANDED, " ./", text)):
        if not written:
            yield word
            yield word.lstrip("@+%~")  # such as @file


def _covered(
    chain: Sequence[ChainElement],
    anchor: Anchor | None,
    dependencies: Mapping[str, str],
    project: str,
) -> set[str]:
    """The real paths of the files that are pinned or verified."""
    tool = chain[0].path
    base = str(anchor.path) if anchor is not None else str(tool.parent) if tool else project
    covered = set()
    for name in dependencies:
        folder, rest = base, name
        if name.startswith(PROJECT):
            folder, rest = project, name.removeprefix(PROJECT)
        elif name.startswith(LIBRARY):
            folder, rest = str(runtime_lib(chain)), name.removeprefix(LIBRARY)
        covered.add(real_path(f"{folder}/{rest}"))
    return covered


def _unpinned(file: NamedFile, chain: Sequence[ChainElement], context: Context) -> UnpinnedError:
    from rye.executor.config.author_lines import accept_command, pins_advice

    tool = chain[0]
    key = file.key if file.key == "interpreter" else f"config.{file.key}"
    return UnpinnedError(
        f"{tool.item_id!r}: {key} names {file.name}, a file in {context.project_path} that is "
        "neither signed nor pinned",
        hint=f"review it, {pins_advice(tool, [file.name])}, then run: {accept_command(tool)} "
        "(a file that is only data can be a parameter with a default instead)",
    )
