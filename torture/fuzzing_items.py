"""Input that a checkout controls: metadata in each format, signature lines, trust entries, ids."""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path

from hypothesis import strategies as st
from rye.errors import ItemFormatError, ItemIdError
from rye.items.element import ItemFile
from rye.items.metadata import parse_metadata
from rye.spaces.ids import check_item_id
from rye.trust.key_format import (
    EntryFormatError,
    is_public_key,
    parse_trusted_key,
    render_trusted_key,
    trusted_key,
)
from rye.trust.signature import split_signature
from trust_world import CREATED, Key

from torture.fuzzing import Fuzz, plain
from torture.mutations import mixture, mutated

_FOLDER = Path("/space")
_PYTHON = b'''"""A tool."""
__version__ = "1.0.0"
__executor_id__ = "python_runtime"
CONFIG = {"args": ["{a}", 1, 2.5, None, True], "env": {"A": "b"}}
CONFIG_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def main(a: str) -> str:
    return a
'''
_YAML = b"""version: "1.0.0"
executor_id: rye/core/primitives/subprocess
description: >-
  Two
  lines
config:
  command: echo
  args: ["{a}", 1, 2.5, null, true]
  env: {A: b}
"""
_BLOCK = b"""#!/bin/sh
# /// rye
# version = "1.0.0"
# executor_id = "bash_runtime"
# config = {args = ["a"], env.A = "b"}
# [config_schema]
# type = "object"
# ///
echo
"""
_YAML_PIECES = [
    b"&a ", b"*a", b"<<: *a", b"!!python/object:os.system ", b"!!binary ", b"[", b"{", b"{a: ",
    b"- ", b"? ", b": ", b"\n", b"\n  ", b"|\n", b">-\n", b"---\n", b"...\n", b"%YAML 9.9\n", b"1:",
    b"1:1.5", b"0x", b"0b", b"0o7", b"_", b".inf", b".nan", b"2026-01-01", b"'", b'"', b'"\\x1b"',
    b"\\", b"\t", b"executor_id: null\n", b"config: ", b"executor_id: null\nconfig:\n  a: ",
    b"\xe2\x80\xa8", b"k" * 2000, b"[a, &x [b, c], *x, *x]", b"=", b"~", b"#", b"@", b"`", b"\x00",
    b"\xff", b"\xef\xbb\xbf",
]  # fmt: skip
_PYTHON_PIECES = [
    b"__executor_id__ = None\n", b"CONFIG = ", b"{", b"}", b"[", b"]", b"(", b")", b",", b"'a'",
    b": ", b"-", b"~", b"1", b"1j", b"9" * 5000, b"f'{", b"lambda: ", b"\n", b"\n    ",
    b"if x:\n  ", b"not ", b"a.", b"b'x'", b"...", b"'\\ud800'", b"'\\N{BULLET}'",
    b"# coding: latin-1\n", b"\xff", b"\\\n", b"import CONFIG\n", b"del CONFIG\n",
    b"class CONFIG: pass\n", b"CONFIG += ", b"await ", b"\x00", b"\x0c",
]  # fmt: skip
_BLOCK_PIECES = [
    b"# /// rye\n", b"# ///\n", b"# ", b"#", b"a.", b"a", b" = ", b"1", b"[", b"]", b"{", b"}",
    b"'", b'"', b"\n", b"executor_id = 'a'\n", b"# executor_id = 'a'\n", b"# config.",
    b"# [config]\n", b"2026-01-01", b"inf", b"nan", b"9" * 5000, b"\r", b"\xff", b'"""',
]  # fmt: skip
_ID_PIECES = [
    "..", "/", ".", "a", "tool", "\\", "\0", "\n", "\x1b[2J", "\u202e", "\ud800", " ", "C:", "~",
    "%2e%2e", "é", "\u0301", "//", "x" * 300, "\u2044", "\uff0f", "-", "@1.0.0", ".ai",
]  # fmt: skip


def scenarios() -> tuple[Fuzz, ...]:
    """Return the properties of files and ids."""
    formats = {
        "metadata in Python": ("a.py", _PYTHON, _PYTHON_PIECES),
        "metadata in YAML": ("a.yaml", _YAML, _YAML_PIECES),
        "metadata in comments": ("a.sh", _BLOCK, _BLOCK_PIECES),
        "metadata in other files": ("a.zz", _BLOCK, _BLOCK_PIECES),
    }
    metadata = tuple(
        Fuzz(
            name=name,
            inputs=mutated([good], pieces) | mixture(pieces),
            opened=plain(partial(file_is_read_or_refused, file_name)),
        )
        for name, (file_name, good, pieces) in formats.items()
    )
    signed = [_signed(original) for original in _originals()]
    lines = [one.split(b"\n")[0] + b"\n" for one in signed] + [
        b"# rye:signed:",
        b"\r\n",
        b"\r",
        b"#!x\n",
    ]
    return (
        *metadata,
        Fuzz(
            name="signature lines",
            inputs=mutated(signed, lines) | st.permutations(lines).map(b"".join),
            opened=plain(signature_is_valid_only_for_signed_bytes),
        ),
        Fuzz(
            name="trust store entries",
            inputs=mutated([_entry()], [b"a.", b"\x1b", b"[", b'"""', b"\\u001b"]),
            opened=plain(entry_is_read_or_refused),
        ),
        Fuzz(
            name="item ids",
            inputs=st.lists(st.sampled_from(_ID_PIECES), max_size=6).map("".join) | st.text(),
            opened=plain(id_stays_in_its_folder_or_is_refused),
        ),
    )


def file_is_read_or_refused(name: str, content: bytes) -> None:
    """The metadata can be encoded as JSON, or the file is refused with an error that names it."""
    path = _FOLDER / name
    try:
        metadata = parse_metadata(ItemFile(path=path, content=content))
    except ItemFormatError as error:
        assert str(error).startswith(str(path)), error
        assert len(str(error)) < 2000, "the message repeats the file"
        return
    for value in (metadata.config, metadata.config_schema, metadata.annotations):
        json.dumps(value, allow_nan=False).encode()


@cache
def _key() -> Key:
    return Key.new()


def _originals() -> tuple[bytes, ...]:
    return (_PYTHON, _BLOCK, b"x\r\ny\r\n", b"", b"\xef\xbb\xbfx\n")


def _signed(content: bytes) -> bytes:
    return _key().sign(content)


def signature_is_valid_only_for_signed_bytes(content: bytes) -> None:
    """A signature is valid only for the bytes that were signed."""
    from lilux.primitives.signing import verify_signature

    line, signed_bytes, content_hash = split_signature(content, "#")
    if line is None:
        assert signed_bytes == content
        return
    assert line.render("#").encode() in content
    if line.content_hash == content_hash and verify_signature(
        line.signed_digest, line.signature, _key().public
    ):
        assert signed_bytes in _originals()


def _entry() -> bytes:
    return render_trusted_key(trusted_key(_key().public, "alice@example.org", CREATED))


def entry_is_read_or_refused(data: bytes) -> None:
    """The key is the known one and its owner is printable, or the entry is refused."""
    try:
        key = parse_trusted_key(data, _key().fingerprint)
    except EntryFormatError as error:
        assert str(error).isprintable()
        return
    assert key.public_key == _key().public
    assert is_public_key(key.public_key)
    assert key.owner.isprintable()


def id_stays_in_its_folder_or_is_refused(item_id: str) -> None:
    """An accepted id is a path below its folder; the error for a refused one is printable."""
    try:
        accepted = check_item_id(item_id)
    except ItemIdError as error:
        assert str(error).isprintable()
        return
    path = _FOLDER / accepted
    assert path.is_relative_to(_FOLDER)
    assert not {"..", "."} & set(accepted.split("/"))
    assert accepted.encode()
