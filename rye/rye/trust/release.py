"""``python -m rye.trust.release``: sign the system space again.

Each release has a new key: it signs every file, its public half is written into the space, and the
private half is never stored. Run this after any change to a system item.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lilux.files.atomic import atomic_write

from rye.errors import KeyStoreError, RyeError
from rye.trust.key_format import render_trusted_key, time_now, trusted_key
from rye.trust.signer import SignedItem, Signer

OWNER = "rye release"

_KEYS = "trusted_keys"
# Files that are created by running tools.
_NOT_SHIPPED = frozenset({"__pycache__", "lockfiles", "node_modules"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """The result of signing a system space."""

    fingerprint: str
    signed: tuple[SignedItem, ...]
    removed_keys: tuple[Path, ...]


def release(root: Path, owner: str = OWNER) -> Release:
    """Sign every file of the ``.ai`` folder ``root`` with a new key, and remove the old keys.

    The old keys are removed last: if this is interrupted, all files are still trusted.
    Raises :class:`RyeError` for a file that cannot be signed or written.
    """
    signer = Signer.fresh()
    keys = root / _KEYS
    key = trusted_key(signer.public_key, owner, time_now())
    new = keys / f"{key.fingerprint}.toml"
    try:
        keys.mkdir(exist_ok=True)
        atomic_write(new, render_trusted_key(key))
        signed = tuple([signer.sign_file(path, root) for path in shipped_files(root)])
        old = tuple(sorted(path for path in keys.glob("*.toml") if path != new))
        for path in old:
            path.unlink()
    except OSError as error:
        raise KeyStoreError(
            f"cannot write to {root}: {error.strerror}",
            hint="run this on a writable copy",
        ) from error
    return Release(fingerprint=signer.fingerprint, signed=signed, removed_keys=old)


def shipped_files(root: Path) -> Iterator[Path]:
    """Yield every file of a space that needs a signature line: all but keys and generated files."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(
            name
            for name in names
            if name not in _NOT_SHIPPED and not (name == _KEYS and Path(folder) == root)
        )
        for name in sorted(files):
            yield Path(folder, name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Sign the system space of this installation, or a given ``.ai`` folder for a given owner."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 2 or (given and given[0].startswith("-")):
        sys.stderr.write("usage: python -m rye.trust.release [FOLDER [OWNER]]\n")
        return 2
    root = Path(given[0]) if given else Path(__file__).parent.parent / ".ai"
    if not root.is_dir():
        sys.stderr.write(f"{root} is not a folder; name the .ai folder to sign\n")
        return 2
    try:
        done = release(root.resolve(), *given[1:])
    except RyeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"signed {len(done.signed)} files with key {done.fingerprint}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
