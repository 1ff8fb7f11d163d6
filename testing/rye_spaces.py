"""A project, a user and a system space in a temporary folder."""

import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from rye.context import Context
from rye.errors import RyeError
from rye.spaces.folders import is_settled, stamp_of
from rye.spaces.model import Resolution
from rye.spaces.resolver import Resolver

PYTHON_ITEM = '__version__ = "1.0.0"\n__executor_id__ = "python_runtime"\n'


class TemporarySpaces:
    """The three spaces below ``folder``; each is created with its first file."""

    def __init__(self, folder: Path, environ: Mapping[str, str] | None = None) -> None:
        self.folder = folder.resolve()
        self.context = Context(
            project_path=self.folder / "project",
            user_space=self.folder / "user",
            system_space=self.folder / "system",
            environ=MappingProxyType(dict(environ or {})),
        )

    def tools(self, space: str) -> Path:
        """Return the ``tools`` folder of a space."""
        return self.folder / space / ".ai" / "tools"

    def write(self, space: str, name: str, text: str = PYTHON_ITEM) -> Path:
        """Write an item; ``name`` is its path below ``tools``, with the extension."""
        path = self.tools(space) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def resolver(self) -> Resolver:
        """Return a new resolver with empty caches."""
        return Resolver(self.context)

    def settle(self) -> None:
        """Wait until every folder is old enough for answers to be cached."""
        deadline = time.monotonic() + 10
        folders = [each for each in self.folder.rglob("*") if each.is_dir()]
        while not all(is_settled(stamp_of(str(each))) for each in folders):
            assert time.monotonic() < deadline, "the folders never became old enough"
            time.sleep(0.005)


def has_same_answer(resolver: Resolver, found: Resolution) -> bool:
    """True if the same search has the same result now."""
    try:
        now = resolver.resolve(found.asked or found.item_id, from_space=found.from_space)
    except RyeError:
        return False
    return (now.path, now.item_id, now.space) == (found.path, found.item_id, found.space)
