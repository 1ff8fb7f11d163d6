"""The first comment of a script, which usually says what it does."""

from __future__ import annotations

import re

_MAX = 300
_NOISE = r"(?i)(-\*-|vim?:|shellcheck|eslint|@ts-|/// |copyright|spdx|rye:signed|license)"


def first_comment(text: str, comment: str) -> str:
    """The first paragraph of comment lines, on one line; empty if the code comes first."""
    found: list[str] = []
    skipping = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#!") or (not stripped and not found):
            continue
        if comment == "//" and stripped.startswith(("/*", "*")):
            body = re.sub(r"^/?\*+/?|\*/$", "", stripped).strip()
            if body.startswith("@") or (not body and found):
                break
            found += [body] if body else []
            continue
        if not stripped.startswith(comment):
            break
        body = stripped[len(comment) :].lstrip("#/").strip()
        if re.match(r"/// \w+", stripped[len(comment) :].strip()):
            skipping = True
        elif stripped == f"{comment} ///":
            skipping = False
        elif skipping or re.search(_NOISE, body):
            continue
        elif not body and found:
            break
        elif body and not re.fullmatch(r"[-=*#~ ]+", body):
            found.append(body)
    text = " ".join(found)
    sentence = re.match(r"(.+?[.!?])(?:\s|$)", text)
    if sentence is not None:
        text = sentence[1]
    return text.rstrip(".")[:_MAX] if text.count(".") <= 1 else text[:_MAX]
