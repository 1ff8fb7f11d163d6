"""What names a source: ``GIT-URL[@REF][#PATH]``, or an archive with ``[#PATH]``."""

from __future__ import annotations

import re
from pathlib import Path

from lilux.record import Record

from rye.errors import RyeError

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".zip")
_SCP_LIKE = r"[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:(?!//)"


class Reference(Record, frozen=True, kw_only=True):
    """A source as the user names it."""

    kind: str
    """``git`` or ``archive``."""
    url: str
    """A URL, or an absolute path."""
    ref: str = ""
    """A branch, tag or commit; empty for the default branch."""
    path: str = ""
    """The folder inside of it; empty for all of it."""

    @property
    def name(self) -> str:
        """The default name: the last part of the path or of the URL."""
        last = (self.path or self.url).rstrip("/").rpartition("/")[2].rpartition(":")[2]
        for suffix in (".git", *_ARCHIVES):
            last = last.removesuffix(suffix)
        return re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-") or "tools"

    def __str__(self) -> str:
        ref = f"@{self.ref}" if self.ref else ""
        path = f"#{self.path}" if self.path else ""
        return f"{self.url}{ref}{path}"


def reference_of(text: str, cwd: Path) -> Reference | None:
    """The source that ``text`` names; ``None`` if it names a file to add, or nothing known.

    Raises :class:`RyeError` for a URL or a path in it that cannot be used.
    """
    place, _, path = text.partition("#")
    if "://" in place:
        # git+https://…, as package installers write it.
        place = place.removeprefix("git+")
    path = path.strip("/")
    if not {".", ".."}.isdisjoint(path.split("/")):
        raise RyeError(f"{path!r} leads out of the source", hint="name a folder inside of it")
    local = cwd / place
    remote = "://" in place or re.match(_SCP_LIKE, place) is not None
    if place.endswith(_ARCHIVES) and (remote or local.is_file()):
        url = place if remote else str(local.resolve())
        return Reference(kind="archive", url=url, path=path)
    if not remote:
        url, ref = _split_ref(place)
        if not (cwd / url).is_dir():
            return None
        if not any((cwd / url / name).exists() for name in (".git", "HEAD")):
            raise RyeError(
                f"{cwd / url} is a directory, and not a git repository",
                hint="add its scripts one by one, or pack it into an archive",
            )
        return Reference(kind="git", url=str((cwd / url).resolve()), ref=ref, path=path)
    url, ref = _split_ref(place)
    if ref.startswith("-") or url.startswith("-"):
        raise RyeError(f"{text!r} is not a URL", hint="write GIT-URL@REF#PATH")
    return Reference(kind="git", url=url, ref=ref, path=path)


def _split_ref(place: str) -> tuple[str, str]:
    """``https://host/x.git@v1`` as URL and ref; the user in ``git@host:x`` is not a ref."""
    url, marked, ref = place.rpartition(".git@")
    if marked and ref:
        return f"{url}.git", ref
    url, _, ref = place.rpartition("@")
    if url and ref and "/" not in ref and ":" not in ref:
        return url, ref
    return place, ""
