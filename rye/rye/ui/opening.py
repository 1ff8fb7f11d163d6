"""Opening the browser without showing the link to other users of this machine.

The arguments of a process are public, and a link on them could be used before the browser does. So
the browser is given a private file that leads to the link.
"""

from __future__ import annotations

import contextlib
import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Mapping
from pathlib import Path


class LinkFile:
    """A private file that leads a browser to a link; remove it once it has been used."""

    def __init__(self, link: str) -> None:
        # mkdtemp makes a folder, and mkstemp a file, that only this user can read.
        self._folder = Path(tempfile.mkdtemp(prefix="rye-ui-"))
        number, name = tempfile.mkstemp(suffix=".html", dir=self._folder)
        self.path = Path(name)
        address = html.escape(link)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Rye</title>\n'
                '<meta name="referrer" content="no-referrer">\n'
                f'<meta http-equiv="refresh" content="0; url={address}">\n'
                f'<p><a href="{address}">Open Rye</a></p>\n</html>\n'
            )

    def remove(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
            self._folder.rmdir()


def can_open_browser(environ: Mapping[str, str]) -> bool:
    """True if this session has a screen for a browser."""
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in environ
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY") or environ.get("BROWSER"))


def open_browser(link_file: LinkFile) -> bool:
    """Open the file in the user's browser; return False if there is none."""
    try:
        return webbrowser.open(link_file.path.as_uri())
    except (webbrowser.Error, OSError):
        return False
