"""The files in a trust store: a trusted key, the approval of a key, the approval of a project.

::

    fingerprint = "4be1c20d9a7f3358"
    owner = "alice@example.org"
    created = "2026-11-03T14:25:30Z"
    public_key = \"\"\"
    -----BEGIN PUBLIC KEY-----
    …
    -----END PUBLIC KEY-----
    \"\"\"

An approval has ``fingerprint``, ``approved`` and ``public_key_sha256``: the fingerprint of 64 bits
names the key, the full hash pins it. The approval of a project has ``project`` (for people: the
name of the file pins the path), ``approved`` and ``digest``. A file with several keys, as
``rye trust export`` prints it, has a table ``[[key]]`` for each. Unknown fields are ignored.
"""

from __future__ import annotations

import re

from lilux.primitives.signing.identity import compute_key_fingerprint
from lilux.record import Record
from lilux.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

FINGERPRINT = r"[0-9a-f]{16}"
MAX_OWNER_CHARACTERS = 200
_MAX_PATH_CHARACTERS = 4096

# An Ed25519 key as SubjectPublicKeyInfo has exactly one spelling: twelve fixed bytes, then the key.
# So it can be recognised without loading a cryptographic library.
_PUBLIC_KEY = (
    rb"-----BEGIN PUBLIC KEY-----\n"
    rb"MCowBQYDK2VwAyEA[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\n"
    rb"-----END PUBLIC KEY-----\n"
)
_SHA256 = r"[0-9a-f]{64}"


class EntryFormatError(ValueError):
    """The reason why a file is malformed, without its path, which the caller adds."""


class TrustedKey(Record, frozen=True, kw_only=True):
    """A public key, and the owner that its file names."""

    fingerprint: str
    owner: str
    public_key: bytes
    created: str


class Approval(Record, frozen=True, kw_only=True):
    """The user's approval of one key that a project lists."""

    fingerprint: str
    public_key_sha256: str
    approved: str


class ProjectRecord(Record, frozen=True, kw_only=True):
    """The approval of a project."""

    project: str
    """Its path, for people."""
    digest: str
    approved: str


def trusted_key(public_key: bytes, owner: str, created: str) -> TrustedKey:
    """Make an entry; raises :class:`EntryFormatError` for an invalid key or owner."""
    key = TrustedKey(
        fingerprint=compute_key_fingerprint(public_key),
        owner=owner,
        public_key=public_key,
        created=created,
    )
    _check_trusted_key(key)
    return key


def parse_trusted_key(data: bytes, stem: str) -> TrustedKey:
    """Read a file named ``{stem}.toml``; raises :class:`EntryFormatError` with the reason."""
    key = _trusted_key_from(_load(data))
    _check_name(key.fingerprint, stem)
    return key


def render_trusted_key(key: TrustedKey) -> bytes:
    """Return the content of the key's file."""
    lines = (
        f'fingerprint = "{key.fingerprint}"',
        f"owner = {quoted(key.owner)}",
        f"created = {quoted(key.created)}",
        f'public_key = """\n{key.public_key.decode("ascii")}"""',
    )
    return ("\n".join(lines) + "\n").encode()


def parse_trusted_keys(data: bytes) -> tuple[TrustedKey, ...]:
    """Read a file with several keys, each a table ``[[key]]``; raises :class:`EntryFormatError`."""
    tables = _load(data).get("key")
    if not isinstance(tables, list) or not tables:
        raise EntryFormatError("has no [[key]]")
    keys = []
    for number, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise EntryFormatError("has a key that is not a table")
        try:
            keys.append(_trusted_key_from(table))
        except EntryFormatError as error:
            raise EntryFormatError(f"key {number}: {error}") from None
    return tuple(keys)


def render_trusted_keys(keys: Iterable[TrustedKey]) -> bytes:
    """Return the content of a file with several keys."""
    return b"\n".join([b"[[key]]\n" + render_trusted_key(key) for key in keys])


def parse_approval(data: bytes, stem: str) -> Approval:
    """Read a file named ``{stem}.toml``; raises :class:`EntryFormatError` with the reason."""
    table = _load(data)
    approval = Approval(
        fingerprint=_text(table, "fingerprint"),
        public_key_sha256=_text(table, "public_key_sha256"),
        approved=_text(table, "approved"),
    )
    if not re.fullmatch(_SHA256, approval.public_key_sha256):
        raise EntryFormatError("public_key_sha256 is not 64 lower-case hex digits")
    _check_name(approval.fingerprint, stem)
    return approval


def render_approval(approval: Approval) -> bytes:
    """Return the content of the approval's file."""
    lines = (
        f'fingerprint = "{approval.fingerprint}"',
        f"approved = {quoted(approval.approved)}",
        f'public_key_sha256 = "{approval.public_key_sha256}"',
    )
    return ("\n".join(lines) + "\n").encode()


def parse_removal(data: bytes, stem: str) -> str:
    """Return when the user stopped trusting a key; raises :class:`EntryFormatError`."""
    table = _load(data)
    _check_name(_text(table, "fingerprint"), stem)
    return _text(table, "removed")


def render_removal(fingerprint: str, removed: str) -> bytes:
    """Return the content of the file that remembers a removed key."""
    return f'fingerprint = "{fingerprint}"\nremoved = {quoted(removed)}\n'.encode()


def approval_of(fingerprint: str, public_key: bytes, approved: str) -> Approval:
    """Return an approval that pins the key."""
    return Approval(
        fingerprint=fingerprint,
        public_key_sha256=sha256(public_key).hexdigest(),
        approved=approved,
    )


def parse_project_digest(data: bytes) -> str:
    """Return the digest in the approval of a project; raises :class:`EntryFormatError`."""
    return _digest(_load(data))


def parse_project_approval(data: bytes) -> ProjectRecord:
    """Return the approval of a project; raises :class:`EntryFormatError`."""
    table = _load(data)
    return ProjectRecord(
        project=_text(table, "project"),
        digest=_digest(table),
        approved=_text(table, "approved"),
    )


def _digest(table: dict[str, Any]) -> str:
    digest = _text(table, "digest")
    if not re.fullmatch(_SHA256, digest):
        raise EntryFormatError("digest is not 64 lower-case hex digits")
    return digest


def render_project_approval(project: str, digest: str, approved: str) -> bytes:
    """Return the content of the file that approves a project."""
    readable = "".join([one if one.isprintable() else ascii(one)[1:-1] for one in project])
    lines = (
        f"project = {quoted(readable[:_MAX_PATH_CHARACTERS])}",
        f"approved = {quoted(approved)}",
        f'digest = "{digest}"',
    )
    return ("\n".join(lines) + "\n").encode()


def is_public_key(data: bytes) -> bool:
    """True if ``data`` is the PEM of an Ed25519 public key in its only spelling."""
    return re.fullmatch(_PUBLIC_KEY, data) is not None


def time_now() -> str:
    """Return the current time in the format of ``created`` and ``approved``."""
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _trusted_key_from(table: dict[str, Any]) -> TrustedKey:
    key = TrustedKey(
        fingerprint=_text(table, "fingerprint"),
        owner=_text(table, "owner"),
        public_key=_text(table, "public_key").encode(),
        created=_text(table, "created"),
    )
    _check_trusted_key(key)
    return key


def _check_trusted_key(key: TrustedKey) -> None:
    if not is_public_key(key.public_key):
        raise EntryFormatError("public_key is not the PEM of an Ed25519 public key")
    if key.fingerprint != compute_key_fingerprint(key.public_key):
        raise EntryFormatError("fingerprint does not match public_key")
    for name, text in (("owner", key.owner), ("created", key.created)):
        # These are shown to a user who decides about trust, and must not control the terminal.
        if not text.isprintable() or len(text) > MAX_OWNER_CHARACTERS:
            raise EntryFormatError(
                f"{name} is not one line of at most {MAX_OWNER_CHARACTERS} printable characters"
            )


def _check_name(fingerprint: str, stem: str) -> None:
    if not re.fullmatch(FINGERPRINT, fingerprint):
        raise EntryFormatError("fingerprint is not 16 lower-case hex digits")
    if fingerprint != stem:
        raise EntryFormatError(f"contains key {fingerprint}, which does not match its name")


def _load(data: bytes) -> dict[str, Any]:
    from lilux.files.toml import load_toml

    try:
        return load_toml(data.decode())
    except ValueError as error:
        raise EntryFormatError("is not valid TOML") from error


def _text(table: dict[str, Any], name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str):
        raise EntryFormatError(f"{name} is not a string" if name in table else f"{name} is missing")
    return value


def quoted(text: str) -> str:
    """Return a string of TOML."""
    import json

    # JSON and TOML strings differ only in escapes of unprintable characters, which are refused.
    return json.dumps(text, ensure_ascii=False)
