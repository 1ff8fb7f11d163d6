"""Packages whose public names are imported on first use.

Importing such a package loads none of its modules, which keeps the start of programs fast. The
package lists its public names, each with the module that defines it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for ``package``; ``modules`` maps each name to its module."""

    def load(name: str) -> Any:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import sys
        from importlib import import_module

        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
