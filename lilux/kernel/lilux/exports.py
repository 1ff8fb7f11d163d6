"""The public door of a package whose parts are imported on first use.

Starting up is part of the speed of every program built on Lilux, so importing a package loads none
of its parts. A package lists its public names once, each with the module that defines it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of ``package``: ``homes`` maps each name to its module."""

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
