"""Error output names the author's files, not their copies.

A tool runs from a private copy, so a shell or a stack trace prints paths that mean nothing to its
author. They are replaced in stderr; stdout is data, and is not changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    OnOutput = Callable[[str, str], Awaitable[None] | None]

_STDERR = "stderr"


class Originals:
    """The folders of a copy, and the folders of the author."""

    def __init__(self, root: str, folders: Mapping[str, str]) -> None:
        """``root`` is the copy, or empty; ``folders`` are its folders and their originals."""
        self._root = root
        self._paths = {f"{root}/{folder}/": f"{one}/" for folder, one in folders.items() if root}

    def named(self, text: str) -> str:
        """The text, with the author's files in place of their copies."""
        if self._root and self._root in text:
            for copy, original in self._paths.items():
                text = text.replace(copy, original)
        return text

    def unfinished(self, text: str) -> int:
        """The number of characters at the end that may be the beginning of a path in the copy."""
        longest = min(len(text), max(map(len, self._paths), default=0) - 1)
        for count in range(longest, 0, -1):
            if any(copy.startswith(text[-count:]) for copy in self._paths):
                return count
        return 0


class NamingOutput:
    """Passes output on as it arrives. A path may be split between two pieces."""

    def __init__(self, on_output: OnOutput, originals: Originals) -> None:
        self._on_output = on_output
        self._originals = originals
        self._rest = ""

    def __call__(self, stream: str, text: str) -> Awaitable[None] | None:
        """Pass on everything but what may be the beginning of a path."""
        if stream != _STDERR:
            return self._on_output(stream, text)
        text = self._rest + text
        count = self._originals.unfinished(text)
        self._rest = text[len(text) - count :]
        done = self._originals.named(text[: len(text) - count])
        return self._on_output(stream, done) if done else None

    def end(self) -> Awaitable[None] | None:
        """Pass on the rest."""
        rest, self._rest = self._rest, ""
        return self._on_output(_STDERR, rest) if rest else None
