"""Parse the metadata of an item; the file is never run."""

from __future__ import annotations

import re
from pathlib import Path

from rye.errors import ItemFormatError
from rye.formats import Format, format_of
from rye.items.declarations import NAMES, Declared, RefusedError, metadata_from
from rye.items.element import ItemFile, Metadata
from rye.items.shebang import interpreter_rule, is_script_runtime
from rye.suggestions import one_typo_away

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HINT = "save it as UTF-8 and sign again"

# As Python finds it, in the first two lines; the signature line may precede them.
_CODING = rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)"
_UTF8 = {b"utf-8", b"utf8", b"utf_8", b"ascii", b"us-ascii"}


def parse_metadata(file: ItemFile) -> Metadata:
    """Return the checked declarations of the file.

    Raises :class:`ItemFormatError` with the file, the line and the reason, and its subclass
    :class:`NoMetadataError` for a file without metadata, which is not an item.
    """
    item_format = format_of(file.path)
    text = _text_of(file, item_format)
    if item_format.kind == "python":
        from rye.items.python_literals import declarations_of

        declared = declarations_of(text, file.path)
        _add_interpreter(declared, text, file.path)
        return metadata_from(declared, file.path, "__executor_id__")
    if item_format.kind == "yaml":
        from rye.items.strict_yaml import load_mapping

        values, lines = load_mapping(text, file.path)
    else:
        from rye.items.comment_block import load_block

        values, lines = load_block(text, item_format.comment, file.path)
    declared = _declarations(values, lines, file.path)
    _add_interpreter(declared, text, file.path)
    return metadata_from(declared, file.path, "executor_id")


def _add_interpreter(declared: dict[str, Declared], text: str, path: Path) -> None:
    """Add the interpreter of the first line, for a runtime that starts it."""
    executor = declared.get("executor_id")
    if executor is None or not is_script_runtime(executor.value):
        return
    env_config = declared.get("env_config")
    given = {} if env_config is None else env_config.value
    if not isinstance(given, dict) or "interpreter" in given:
        return
    try:
        rule = interpreter_rule(text)
    except RefusedError as fault:
        hint = "correct it and sign again"
        raise ItemFormatError(path, fault.reason, line=fault.line, hint=hint) from None
    value = {**given, "interpreter": rule}
    declared["env_config"] = Declared(value=value, line=1, name="env_config")


def _text_of(file: ItemFile, item_format: Format) -> str:
    content = file.content
    if content.startswith(b"\xef\xbb\xbf"):
        raise ItemFormatError(file.path, "starts with a byte order mark", line=1, hint=_HINT)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ItemFormatError(file.path, "is not UTF-8", line=line, hint=_HINT) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ItemFormatError(file.path, "contains a NUL character", line=line, hint=_HINT)
    if item_format.kind == "python":
        _refuse_other_encoding(content, file.path)
    return text


def _refuse_other_encoding(content: bytes, path: Path) -> None:
    """Refuse a coding line with which Python would read another text than was checked."""
    for number, line in enumerate(content.split(b"\n", 3)[:3], 1):
        coding = re.match(_CODING, line)
        if coding and coding[1].lower() not in _UTF8:
            raise ItemFormatError(
                path, "declares an encoding other than UTF-8", line=number, hint=_HINT
            )


def _declarations(values: dict[str, Any], lines: dict[str, int], path: Path) -> dict[str, Declared]:
    found = {}
    for key, value in values.items():
        line = lines.get(key)
        if key in NAMES:
            found[key] = Declared(value=value, line=line, name=key)
            continue
        meant = one_typo_away(key, NAMES)
        if meant is not None:
            raise ItemFormatError(
                path,
                f"unknown key '{key}' (did you mean '{meant}'?)",
                line=line,
                hint="correct it and sign again",
            )
    return found
