"""Search for a program in folders.

``shutil.which`` does the same, but ``shutil`` imports the compression libraries, which would add
milliseconds to every start.
"""

from __future__ import annotations

import os
from collections.abc import Iterable


def find_program(name: str, folders: Iterable[str]) -> str | None:
    """Return the path of the first executable file ``name``; relative folders are skipped."""
    for folder in folders:
        if os.path.isabs(folder):  # noqa: PTH117 - as below
            path = os.path.join(folder, name)  # noqa: PTH118 - cheaper than a Path for each folder
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - as above
                return path
    return None
