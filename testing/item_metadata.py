"""Parse the metadata of texts, for tests of its formats."""

from pathlib import Path

import pytest
from rye.errors import ItemFormatError
from rye.items.element import ItemFile, Metadata
from rye.items.metadata import parse_metadata

FIX = "; correct it and sign again"
"""The end of most messages."""


def parse(name: str, text: str | bytes) -> Metadata:
    """The metadata of a file with this name and text."""
    content = text.encode() if isinstance(text, str) else text
    return parse_metadata(ItemFile(path=Path("/space/.ai/tools") / name, content=content))


def refusal(name: str, text: str | bytes) -> str:
    """The message with which the file is refused, without its folder."""
    with pytest.raises(ItemFormatError) as caught:
        parse(name, text)
    return str(caught.value).removeprefix("/space/.ai/tools/")


def block(body: str, comment: str = "#") -> str:
    """A comment block that contains ``body``."""
    lines = [f"{comment} {line}".rstrip() for line in body.splitlines()]
    return "\n".join([f"{comment} /// rye", *lines, f"{comment} ///", ""])
