"""Fetch the files of a source into memory. Nothing of it is executed or checked out."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from lilux.record import Record, field

from rye.authoring.sources.reference import Reference
from rye.errors import RyeError

MAX_FILE = 1024 * 1024
MAX_FILES = 2000
MAX_TOTAL = 32 * 1024 * 1024
MAX_ARCHIVE = 64 * 1024 * 1024
_SECONDS = 300
_PROTOCOLS = "https:ssh:file"
# Set in a git hook, where they are about another repository.
_OF_A_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


class Fetched(Record, frozen=True, kw_only=True):
    """The files of a source, by their path relative to the named folder."""

    revision: str
    """The commit, or the SHA-256 of the archive."""
    files: Mapping[str, bytes] = field(repr=False)
    executable: frozenset[str] = frozenset()


def fetch(reference: Reference) -> Fetched:
    """Fetch the source as it is now. Raises :class:`RyeError`.

    Links are left out. Too many or too large files are refused.
    """
    if reference.kind == "git":
        revision, data = _git(reference)
        found = _untar(data, reference)
    else:
        data = _archive(reference)
        revision = sha256(data).hexdigest()
        found = (
            _unzip(data, reference)
            if zipfile.is_zipfile(io.BytesIO(data))
            else _untar(data, reference)
        )
    files, executable = _below(found, reference)
    if not files:
        raise RyeError(f"{reference} has no files", hint="check the path after #")
    return Fetched(revision=revision, files=files, executable=executable)


def _git(reference: Reference) -> tuple[str, bytes]:
    """The commit, and its files as a tar. The repository is bare: no hook and no filter runs."""
    env = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": _PROTOCOLS}
    with tempfile.TemporaryDirectory(prefix="rye-source-") as scratch:
        folder = str(Path(scratch, "repository"))
        clone = ["git", "clone", "--bare", "--quiet", "--template=", "--", reference.url, folder]
        _run(clone, env, reference, f"{reference.url} cannot be cloned")
        wanted = f"{reference.ref or 'HEAD'}^{{commit}}"
        inside = ["git", "-C", folder]
        missing = f"{reference.url} has no branch, tag or commit {reference.ref or 'HEAD'!r}"
        parse = [*inside, "rev-parse", "--verify", "--quiet", "--end-of-options", wanted]
        commit = _run(parse, env, reference, missing).decode().strip()
        pack = [*inside, "archive", "--format=tar", commit]
        return commit, _run(pack, env, reference, f"{reference} cannot be read")


def _run(command: list[str], env: Mapping[str, str], reference: Reference, problem: str) -> bytes:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env=dict(env),
        )
    except FileNotFoundError:
        raise RyeError("git is not installed", hint="install it") from None
    except subprocess.TimeoutExpired:
        raise RyeError(
            f"{reference.url} did not answer in {_SECONDS} seconds", hint="try again"
        ) from None
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        detail = f" ({reason.removeprefix('fatal: ')[:200]})" if reason else ""
        raise RyeError(f"{problem}{detail}", hint="check the URL, the name and your access")
    return done.stdout


def _archive(reference: Reference) -> bytes:
    if "://" not in reference.url:
        data = Path(reference.url).read_bytes()
    else:
        data = _download(reference.url)
    if len(data) > MAX_ARCHIVE:
        raise RyeError(f"{reference.url} is larger than {MAX_ARCHIVE} bytes", hint="split it")
    return data


def _download(url: str) -> bytes:
    import httpx2

    if not url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise RyeError(f"{url} is not an https URL", hint="download it yourself, and add the file")
    data = b""
    try:
        with httpx2.stream("GET", url, follow_redirects=True, timeout=60) as response:
            response.raise_for_status()
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > MAX_ARCHIVE:
                    break
    except httpx2.HTTPError as error:
        raise RyeError(f"{url} cannot be fetched ({error})", hint="check the URL") from None
    return data


Member = tuple[str, bytes, bool]


def _untar(data: bytes, reference: Reference) -> Iterator[Member]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                if not member.isfile():
                    continue
                _check_size(member.name, member.size)
                file = archive.extractfile(member)
                content = b"" if file is None else file.read(MAX_FILE + 1)
                yield member.name, content, bool(member.mode & 0o100)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise _unreadable(reference, error) from None


def _unzip(data: bytes, reference: Reference) -> Iterator[Member]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                kind = member.external_attr >> 28
                if member.is_dir() or kind not in (0, 0o10):
                    continue
                _check_size(member.filename, member.file_size)
                with archive.open(member) as file:
                    content = file.read(MAX_FILE + 1)
                yield member.filename, content, bool(member.external_attr >> 16 & 0o100)
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError) as error:
        raise _unreadable(reference, error) from None


def _below(
    members: Iterator[Member], reference: Reference
) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files below the named folder, with paths that cannot leave it."""
    files: dict[str, bytes] = {}
    executable = set()
    start = f"{reference.path}/" if reference.path else ""
    is_file = False
    total = 0
    for name, content, runs in members:
        plain = name.removeprefix("./")
        # An archive of a repository usually has one folder around everything.
        if start and not plain.startswith(start) and f"/{start}" in f"/{plain}":
            plain = start + plain.partition(f"/{start}")[2]
        if not plain.startswith(start) or not _is_inside(plain):
            is_file = is_file or f"/{plain}".endswith(f"/{reference.path}")
            continue
        relative = plain[len(start) :]
        _check_size(name, len(content))
        total += len(content)
        files[relative] = content
        if runs:
            executable.add(relative)
        if len(files) > MAX_FILES or total > MAX_TOTAL:
            raise RyeError(
                f"{reference} has more than {MAX_FILES} files or {MAX_TOTAL} bytes",
                hint="name a folder inside of it after #",
            )
    if is_file and not files:
        folder = reference.path.rpartition("/")[0]
        raise RyeError(
            f"{reference} is a file, and a source is a folder of tools",
            hint=f"write #{folder}" if folder else "leave out the part after #",
        )
    return files, frozenset(executable)


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return {"", ".", "..", ".git"}.isdisjoint(parts) and "\\" not in path and path.isprintable()


def _check_size(name: str, size: int) -> None:
    if size > MAX_FILE:
        raise RyeError(
            f"{name} is larger than {MAX_FILE} bytes", hint="name a folder without it after #"
        )


def _unreadable(reference: Reference, error: Exception) -> RyeError:
    return RyeError(f"{reference.url} is not an archive ({error})", hint="check the file")
