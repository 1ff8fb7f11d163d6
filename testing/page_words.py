"""What a person reads on a page of ``rye ui``."""

from __future__ import annotations

import html
import re


def words(text: str) -> str:
    """Return the text of HTML without its markup and tooltips, with one space between words."""
    text = re.sub(r"<title>[^<]*</title>", "", text)
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
    return re.sub(r" (?=[,.;:])", "", text)


def region(text: str, name: str) -> str:
    """Return the words of the section with this heading, without the heading."""
    found = re.search(
        rf'<section[^>]*>\s*<h2 id="[^"]*">{re.escape(name)}</h2>(.*?)</section>', text, re.DOTALL
    )
    assert found is not None, f"no section {name!r}"
    return words(found[1])
