"""The lines of a file that changed since it was signed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from rye.cache.disk import cache_of
from rye.closure.store import store_of
from rye.context import Context
from rye.errors import ClosureError
from rye.executor.locks.pins import Pinned
from rye.formats import format_of
from rye.items.reader import read_item
from rye.spaces.resolver import Resolver
from rye.trust.signature import split_signature
from rye.trust.signed_text import text_signed_at

MAX_LINES = 20


def changes(old: str, new: str, comment: str) -> Iterator[str]:
    """The lines that differ, as in a unified diff without its head; at most ``MAX_LINES``."""
    before, after = [_lines(text, comment) for text in (old, new)]
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    shown = [line for line in lines if not line.startswith("@@")]
    yield from shown[:MAX_LINES]
    if shown[MAX_LINES:]:
        yield f"… and {len(shown) - MAX_LINES} more lines"


def changes_of_pin(pin: Pinned, context: Context) -> tuple[str, ...]:
    """The lines of a tool that a new pin accepts; empty if the old content is not known here."""
    if not pin.replaced:
        return ()
    found = Resolver(context).resolve(pin.item_id)
    if found.path is None:
        return ()
    comment = format_of(found.path).comment
    old = text_signed_at(found.path, pin.replaced, comment, cache_of(context.user_space))
    if old is None:
        old = stored_text(pin.replaced_closure, pin.replaced, comment, context)
    if old is None:
        return ()
    now = read_item(found.path, found.space.root).content.decode(errors="replace")
    return tuple(changes(old, now, comment))


def stored_text(closure: str, content_hash: str, comment: str, context: Context) -> str | None:
    """The text of a tool with this content hash, if it ran here and its closure is stored."""
    try:
        stored = store_of(context).open(closure)
        tool = stored.manifest.tool
        content = b"" if tool is None else Path(stored.root, tool.place or "").read_bytes()
        text = content.decode()
    except (ClosureError, OSError, UnicodeDecodeError):
        return None
    return text if split_signature(content, comment).content_hash == content_hash else None


def _lines(text: str, comment: str) -> list[str]:
    return split_signature(text.encode(), comment).signed_bytes.decode().splitlines()
