"""The private spaces of a worker: what a shipment becomes on another machine.

::

    rye-worker-XXXX/
      lock              held as long as the worker lives
      project/.ai/…     the tool; also the working directory of its calls
      user/.ai/…        keys, tools of the user, caches
      home/             HOME of tools that are not confined

The account that runs Ray on a machine is its operator. Their ``~/.ai/config.yaml`` decides::

    worker: {keys: pinned}             only keys that are trusted on this machine
    permissions: {unenforced: allow}   as for their own calls; by default such a tool is refused

Keys that they revoked are refused in any case. Nothing that the driver sends changes this.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from rye.batches.backends.ray_shipment import Shipment, checked
from rye.context import CONFIG_NAME, Context
from rye.errors import ClosureError, SettingsError, UntrustedKeyError
from rye.items.user_config import CORRECT_IT, UserConfig
from rye.trust.key_format import render_trusted_key, time_now, trusted_key
from rye.trust.store import TrustStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PINNED = "pinned"
_PREFIX = "rye-worker-"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class WorkerSpace:
    """The folder of one worker, which exists until :meth:`close`."""

    def __init__(self) -> None:
        tmp = Path(tempfile.gettempdir())
        _remove_abandoned(tmp)
        self.root = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=tmp)).resolve()
        self._lock: IO[bytes] = (self.root / "lock").open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder."""
        _remove(self.root)
        self._lock.close()

    def fill(self, shipment: Shipment, variables: Mapping[str, str], host: str) -> Context:
        """Write the shipment, and return the context of its calls.

        Raises a ``RyeError`` for a blob or a key that may not be used here.
        """
        operator = Context.from_machine()
        settings = UserConfig(operator).current()
        pinned = _requires_pinned(settings, operator)
        checked(shipment)
        for name in ("project/.ai/tools", "user/.ai/trusted_keys", "home"):
            (self.root / name).mkdir(mode=0o700, parents=True)
        for place, (blob, executable) in shipment.files.items():
            self._write(place, shipment.blobs[blob], executable)
        store = TrustStore(operator)
        for blob, owner in shipment.keys.values():
            key = trusted_key(shipment.blobs[blob], owner, time_now())
            _admit(store, key.fingerprint, key.public_key, pinned=pinned, host=host)
            entry = self.root / f"user/.ai/trusted_keys/{key.fingerprint}.toml"
            entry.write_bytes(render_trusted_key(key))
        config = {"permissions": settings["permissions"]} if "permissions" in settings else {}
        (self.root / "user/.ai" / CONFIG_NAME).write_text(json.dumps(config))
        # Beside the interpreter, as Ray found it, and where systems have their programs.
        path = f"{os.path.dirname(sys.executable)}:{_PATH}"  # noqa: PTH120 - a text
        machine = {"PATH": path, "HOME": str(self.root / "home"), "LANG": "C.UTF-8"}
        return Context(
            project_path=self.root / "project",
            user_space=self.root / "user",
            system_space=operator.system_space,
            environ=MappingProxyType({**machine, **variables}),
        )

    def _write(self, place: str, data: bytes, executable: bool) -> None:
        space, _, rest = place.partition("/")
        folder, *parts = rest.split("/")
        # Beside the tools are the keys and settings that decide what may run.
        known = space in ("project", "user") and folder == "tools"
        if not known or not parts or not {"", ".", ".."}.isdisjoint(parts):
            raise ClosureError(f"{place!r} is not a place for a file", hint="update rye")
        target = self.root / space / ".ai" / rest
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o700 if executable else 0o600)


def _requires_pinned(settings: Mapping[str, Any], operator: Context) -> bool:
    section = settings.get("worker")
    if section is None:
        return False
    if section != {"keys": PINNED}:
        raise SettingsError(
            f"{operator.user_space / '.ai' / CONFIG_NAME}: expected {{keys: {PINNED}}} in 'worker'",
            hint=CORRECT_IT,
        )
    return True


def _admit(store: TrustStore, fingerprint: str, key: bytes, *, pinned: bool, host: str) -> None:
    """Raise :class:`UntrustedKeyError` unless the machine's operator lets the key be used."""
    entry = store.find(fingerprint, ())
    if store.revocation_of(fingerprint) is not None:
        raise UntrustedKeyError(
            f"key {fingerprint} was revoked on {host}",
            hint="sign the tool with another key, or leave out this node",
        )
    if pinned and (entry is None or not entry.is_trusted_in(()) or entry.public_key != key):
        raise UntrustedKeyError(
            f"key {fingerprint} is not trusted on {host}, which requires pinned keys",
            hint="its operator trusts a key there with: rye trust add PUBLIC_KEY.pem",
        )


def _remove_abandoned(tmp: Path) -> None:
    """Remove the folders of workers that were killed."""
    for folder in tmp.glob(f"{_PREFIX}*"):
        try:
            if folder.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            with (folder / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
        except OSError:
            continue


def _remove(folder: Path) -> None:
    # The copies of closures are read-only.
    for one, _, _ in os.walk(folder):
        os.chmod(one, 0o700)  # noqa: PTH101 - a text
    shutil.rmtree(folder, ignore_errors=True)
