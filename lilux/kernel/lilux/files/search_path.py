"""A program among folders. ``shutil`` does that too, but loads compression libraries first."""

from __future__ import annotations

import os
from collections.abc import Iterable


def find_program(name: str, folders: Iterable[str]) -> str | None:
    """The path of the first file ``name`` that may be executed; only absolute folders count."""
    for folder in folders:
        if os.path.isabs(folder):  # noqa: PTH117 - as below
            path = os.path.join(folder, name)  # noqa: PTH118 - a text, for every folder of PATH
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - as above
                return path
    return None
