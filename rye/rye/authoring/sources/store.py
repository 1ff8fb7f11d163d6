"""The sources of the user: ``~/.ai/sources/NAME.json``, and their tools in ``~/.ai/tools/NAME/``.

The record pins the commit, or the hash of the archive, and the content of each file without its
signature line, so that signing a file with one's own key is not a change.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from lilux.files.atomic import atomic_write
from lilux.record import Record

from rye.authoring.sources.fetch import Fetched
from rye.authoring.sources.reference import Reference
from rye.context import Context
from rye.errors import RyeError
from rye.formats import format_of
from rye.spaces.ids import check_item_id
from rye.trust.signature import split_signature

_TOOLS = ".ai/tools/"
_KEYS = ".ai/trusted_keys/"
_FORMAT = 1


class Source(Record, frozen=True, kw_only=True):
    """An installed source."""

    name: str
    reference: Reference
    revision: str
    files: Mapping[str, str]
    """Path below the folder of the source → content hash."""


class Sources:
    """The sources in a user space."""

    def __init__(self, context: Context) -> None:
        self._root = context.user_space / ".ai"
        self._records = self._root / "sources"

    def folder(self, name: str) -> Path:
        """The folder of the tools of a source."""
        return self._root / "tools" / name

    def names(self) -> list[str]:
        """The names of all sources, sorted."""
        found = self._records.glob("*.json") if self._records.is_dir() else []
        return sorted([path.stem for path in found])

    def find(self, name: str) -> Source | None:
        """The source with this name. Raises :class:`RyeError` for a record that is damaged."""
        if "/" in name or not (path := self._record(name)).is_file():
            return None
        try:
            values = json.loads(path.read_bytes())
            return Source(
                name=name,
                reference=Reference(**values["reference"]),
                revision=str(values["revision"]),
                files={str(key): str(value) for key, value in values["files"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RyeError(
                f"{path} is malformed",
                hint=f"remove it, and {self.folder(name)}, then add it again",
            ) from None

    def check_free(self, name: str) -> None:
        """Raise :class:`RyeError` unless a new source can have this name."""
        if "/" in check_item_id(name) or not name.isprintable():
            raise RyeError(f"{name!r} is not a name for a source", hint="pass one with --as")
        if self.find(name) is not None:
            raise RyeError(
                f"there is a source {name!r} already",
                hint=f"update it with: rye update {name}, or choose another name with --as",
            )
        if self.folder(name).exists():
            raise RyeError(f"{self.folder(name)} exists", hint="choose another name with --as")

    def refuse_local_changes(self, source: Source) -> None:
        """Raise :class:`RyeError` for a file of the source that was changed here."""
        folder = self.folder(source.name)
        for relative, expected in source.files.items():
            path = folder / relative
            if path.is_file() and content_hash(path.read_bytes(), path) != expected:
                raise RyeError(
                    f"{path} was changed here since it was added",
                    hint="move it to a name of its own, then try again",
                )

    def install(
        self, name: str, reference: Reference, fetched: Fetched, old: Source | None = None
    ) -> Source:
        """Write the files and the record; files that the new revision does not have are removed."""
        folder = self.folder(name)
        files = tool_files(fetched.files)
        for relative in set(old.files if old is not None else ()) - set(files):
            (folder / relative).unlink(missing_ok=True)
        for relative, content in files.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            runs = any(relative == one.removeprefix(_TOOLS) for one in fetched.executable)
            atomic_write(path, content, mode=0o755 if runs else 0o644)
        for relative, content in key_files(fetched.files).items():
            path = self._records / name / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, content)
        made = Source(
            name=name,
            reference=reference,
            revision=fetched.revision,
            files={one: content_hash(content, folder / one) for one, content in files.items()},
        )
        self._records.mkdir(parents=True, exist_ok=True)
        atomic_write(self._record(name), _encoded(made))
        return made

    def key_file(self, name: str, fingerprint: str) -> Path | None:
        """The key that the source brings under this fingerprint; it is not trusted for that."""
        path = self._records / name / f"{fingerprint}.toml"
        return path if path.is_file() else None

    def remove(self, source: Source) -> tuple[Path, ...]:
        """Remove the files of a source and its record; other files in its folder stay."""
        folder = self.folder(source.name)
        removed = [folder / one for one in source.files if (folder / one).is_file()]
        for path in removed:
            path.unlink()
        for path in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else ():
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        shutil.rmtree(self._records / source.name, ignore_errors=True)
        self._record(source.name).unlink()
        return (*removed, self._record(source.name))

    def _record(self, name: str) -> Path:
        return self._records / f"{name}.json"


def tool_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that become tools: those below ``.ai/tools`` if there is one, or else all."""
    inner = {name[len(_TOOLS) :]: one for name, one in files.items() if name.startswith(_TOOLS)}
    return inner or {name: one for name, one in files.items() if not name.startswith(".")}


def key_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The public keys that the source lists, by file name."""
    found = {name[len(_KEYS) :]: one for name, one in files.items() if name.startswith(_KEYS)}
    return {name: one for name, one in found.items() if "/" not in name and name.endswith(".toml")}


def changed_files(old: Mapping[str, str], new: Sequence[tuple[str, str]]) -> list[str]:
    """What an update adds, changes and removes, for people."""
    after = dict(new)
    lines = [f"changed {one}" for one in after if one in old and old[one] != after[one]]
    lines += [f"new {one}" for one in after if one not in old]
    return sorted(lines) + sorted([f"removed {one}" for one in old if one not in after])


def content_hash(content: bytes, path: Path) -> str:
    """The SHA-256 without the signature line."""
    return split_signature(content, format_of(path).comment).content_hash


def _encoded(source: Source) -> bytes:
    reference = source.reference
    values = {
        "format": _FORMAT,
        "reference": {
            "kind": reference.kind,
            "url": reference.url,
            "ref": reference.ref,
            "path": reference.path,
        },
        "revision": source.revision,
        "files": dict(source.files),
    }
    return (json.dumps(values, indent=2) + "\n").encode()
