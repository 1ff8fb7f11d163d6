"""Bounded reads of text files that somebody else wrote."""

from pathlib import Path

from lilux.files.bounded_read import NotRegularFileError, read_bounded


def read_text(path: Path, limit: int) -> str | None:
    """The text of a regular file of at most ``limit`` bytes, or ``None`` if there is no such file.

    Never blocks on a FIFO. Raises ``OSError``, ``UnicodeDecodeError`` or
    :class:`~lilux.files.bounded_read.FileTooLargeError` for a file that is there and cannot
    be used.
    """
    try:
        return read_bounded(path, limit).decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError, NotRegularFileError):
        return None


def read_text_if_usable(path: Path, limit: int = 64 * 1024) -> str | None:
    """Like :func:`read_text`, and ``None`` for whatever cannot be used."""
    try:
        return read_text(path, limit)
    except (OSError, ValueError):
        return None
