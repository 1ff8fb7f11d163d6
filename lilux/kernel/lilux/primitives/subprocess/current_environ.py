"""This process's environment as a plain dict, without decoding all of it for every call."""

import os
from collections.abc import Mapping

# The raw bytes as they were last seen, and their text; replaced as one, so no thread sees half.
_last: tuple[dict[bytes, bytes], dict[str, str]] = ({}, {})


def current_environ() -> Mapping[str, str]:
    """What ``dict(os.environ)`` gives; not to be changed.

    That call decodes every name and value in Python, 50 µs for 35 variables, more than all the
    rest of a request. So the raw bytes behind it are compared with those of the last time, which
    takes one. Where an interpreter has no such bytes, it is simply decoded anew.
    """
    global _last  # noqa: PLW0603 - a memory of one entry
    raw = getattr(os.environ, "_data", None)
    if not isinstance(raw, dict):
        return dict(os.environ)
    seen, text = _last
    if raw != seen:
        seen = dict(raw)
        text = {os.fsdecode(name): os.fsdecode(value) for name, value in seen.items()}
        _last = (seen, text)
    return text
