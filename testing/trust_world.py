"""Keys, and spaces in a temporary folder, for tests about trust."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lilux.primitives.signing import compute_key_fingerprint, generate_keypair
from rye.context import Context
from rye.items.element import ItemFile
from rye.spaces.model import Space
from rye.trust.key_format import render_trusted_key, trusted_key
from rye.trust.signature import compose
from rye.trust.store import TrustStore

CREATED = "2026-11-03T14:25:30Z"
TIMESTAMP = "20261103T142530Z"


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key pair."""

    private: bytes = field(repr=False)
    public: bytes

    @classmethod
    def new(cls) -> Key:
        private, public = generate_keypair()
        return cls(private=private, public=public)

    @property
    def fingerprint(self) -> str:
        return compute_key_fingerprint(self.public)

    def sign(self, content: bytes, comment: str = "#", timestamp: str = TIMESTAMP) -> bytes:
        return compose(
            content,
            comment,
            private_key=self.private,
            fingerprint=self.fingerprint,
            timestamp=timestamp,
        )


class TrustWorld:
    """An empty project, user space and system space."""

    def __init__(self, folder: Path) -> None:
        self.context = Context(
            project_path=folder / "project",
            user_space=folder / "user",
            system_space=folder / "system",
            environ={},
        )
        self.project = self.context.project_path / ".ai"
        self.user = self.context.user_space / ".ai"
        self.system = self.context.system_space / ".ai"
        for root in (self.project, self.user, self.system):
            (root / "tools").mkdir(parents=True)
            root.chmod(0o755)
        self.system_space = Space(name="system", root=self.system, bundle="rye")

    def store(self) -> TrustStore:
        """Return a new store, as in a new process."""
        return TrustStore(self.context, spaces=(self.system_space,))

    def put_key(self, root: Path, key: Key, owner: str = "alice", name: str = "") -> Path:
        """Write a trust store entry; return its path."""
        folder = root / "trusted_keys"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        path = folder / f"{name or key.fingerprint}.toml"
        path.write_bytes(render_trusted_key(trusted_key(key.public, owner, CREATED)))
        path.chmod(0o644)
        return path

    def item(self, content: bytes, name: str = "tool.py") -> ItemFile:
        """Return an item file of the project with this content."""
        return ItemFile(path=self.project / "tools" / name, content=content)
