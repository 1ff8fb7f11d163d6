"""The signature line: its only place, its only spelling, and what its hash covers."""

import hashlib
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lilux.primitives.signing import verify_signature
from rye.trust.signature import (
    SignatureLine,
    compose,
    has_broken_line,
    signed_digest,
    split_signature,
    timestamp_now,
)
from trust_world import TIMESTAMP, Key

KEY = Key.new()
BODY = b"__version__ = '1.0.0'\nprint('hi')\n"
SIGNED = KEY.sign(BODY)
LINE, _, REST = SIGNED.partition(b"\n")
BOM = b"\xef\xbb\xbf"
MODEST = settings(max_examples=100, deadline=None)


def line_of(content: bytes, comment: str = "#") -> SignatureLine | None:
    return split_signature(content, comment).line


class TestWriting:
    def test_the_line_has_six_fields_between_colons(self) -> None:
        mark, name, timestamp, content_hash, signature, fingerprint = LINE.decode().split(":")
        assert (mark, name, timestamp) == ("# rye", "signed", "20261103T142530Z")
        assert content_hash == hashlib.sha256(BODY).hexdigest()
        assert fingerprint == KEY.fingerprint
        digest = hashlib.sha256(f"{timestamp}:{content_hash}".encode()).hexdigest()
        assert verify_signature(digest, signature, KEY.public)

    def test_it_is_the_first_line_and_the_rest_stays_byte_for_byte(self) -> None:
        assert REST == BODY

    def test_it_follows_a_shebang_which_is_hashed(self) -> None:
        content = b"#!/usr/bin/env python3\n" + BODY
        lines = KEY.sign(content).split(b"\n", 2)
        assert lines[0] == b"#!/usr/bin/env python3"
        assert lines[1].startswith(b"# rye:signed:")
        assert lines[2] == BODY
        assert split_signature(KEY.sign(content), "#").signed_bytes == content

    def test_a_shebang_without_a_line_ending_gets_one(self) -> None:
        signed = KEY.sign(b"#!/bin/sh")
        assert split_signature(signed, "#").signed_bytes == b"#!/bin/sh\n"
        assert line_of(signed) is not None

    def test_it_follows_a_byte_order_mark_which_is_hashed(self) -> None:
        signed = KEY.sign(BOM + BODY)
        assert signed.startswith(BOM + b"# rye:signed:")
        assert split_signature(signed, "#").signed_bytes == BOM + BODY

    def test_it_has_the_line_ending_of_the_file(self) -> None:
        assert KEY.sign(b"a\r\nb\r\n").split(b"\n")[0].endswith(b"\r")
        assert not KEY.sign(b"a\nb\r\n").split(b"\n")[0].endswith(b"\r")

    @pytest.mark.parametrize("comment", ["//", "--", ";", "%", '"', "!", "REM"])
    def test_it_uses_the_comment_sign_of_the_language(self, comment: str) -> None:
        signed = KEY.sign(BODY, comment)
        assert signed.startswith(f"{comment} rye:signed:".encode())
        assert line_of(signed, comment) is not None

    def test_signing_again_replaces_the_line(self) -> None:
        again = KEY.sign(SIGNED, timestamp="20270101T000000Z")
        assert again.count(b"rye:signed:") == 1
        assert split_signature(again, "#").signed_bytes == BODY

    @pytest.mark.parametrize(
        "broken",
        [
            b"# rye:signed:nonsense\n",
            b"#rye:signed:\n",
            b"  # RYE:SIGNED:x\r\n",
            LINE.upper() + b"\n",
        ],
    )
    def test_signing_replaces_a_malformed_line(self, broken: bytes) -> None:
        assert split_signature(KEY.sign(broken + BODY), "#").signed_bytes == BODY

    def test_an_invalid_key_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not the PKCS8 PEM of an Ed25519 private key"):
            compose(BODY, "#", private_key=b"x", fingerprint=KEY.fingerprint, timestamp=TIMESTAMP)

    def test_a_timestamp_of_now_fits_the_line(self) -> None:
        assert re.fullmatch(r"\d{8}T\d{6}Z", timestamp_now())
        assert line_of(KEY.sign(BODY, timestamp=timestamp_now())) is not None


class TestReading:
    def test_what_was_written_is_read(self) -> None:
        line, signed_bytes, content_hash = split_signature(SIGNED, "#")
        assert line is not None
        assert (line.timestamp, line.fingerprint) == (TIMESTAMP, KEY.fingerprint)
        assert signed_bytes == BODY
        assert line.content_hash == content_hash == hashlib.sha256(BODY).hexdigest()
        assert line.signed_digest == signed_digest(TIMESTAMP, content_hash)
        assert line.render("#").encode() == LINE

    def test_without_a_line_every_byte_is_content(self) -> None:
        assert split_signature(BODY, "#") == (None, BODY, hashlib.sha256(BODY).hexdigest())

    @pytest.mark.parametrize(
        "content",
        [
            b"\n" + SIGNED,
            b"import os\n" + SIGNED,
            b"# a remark\n" + SIGNED,
            b"#!/bin/sh\n\n" + SIGNED,
            b"#!/bin/sh\nimport os\n" + SIGNED,
            b" " + SIGNED,
            b"\x00" + SIGNED,
            b"\r" + SIGNED,
            b"x = 1; " + SIGNED,
            BOM + BOM + SIGNED,
        ],
    )
    def test_a_line_in_any_other_place_is_content(self, content: bytes) -> None:
        split = split_signature(content, "#")
        assert split == (None, content, hashlib.sha256(content).hexdigest())

    def test_of_two_lines_the_second_is_content(self) -> None:
        twice = LINE + b"\n" + SIGNED
        assert split_signature(twice, "#").signed_bytes == SIGNED

    @pytest.mark.parametrize(
        "line",
        [
            LINE + b" ",
            LINE + b"\t",
            LINE + b" # and more",
            LINE + b"\r\r",
            LINE + b"\rimport os",
            LINE + b"\x0cimport os",
            LINE + b":extra",
            LINE.replace(b"# rye", b"#rye"),
            LINE.replace(b"# rye", b"#  rye"),
            LINE.replace(b"# rye", b"#\trye"),
            LINE.replace(b"rye:signed", b"rye:SIGNED"),
            LINE.replace(b"==:", b"=:"),
            LINE.replace(b"==:", b":"),
            LINE[:-16] + LINE[-16:].upper().replace(b"0", b"A"),
            LINE.replace(b"20261103T142530Z", b"2026-11-03T14:25:30Z"),
            LINE.replace(b"20261103T142530Z", b"20261103t142530z"),
            LINE[:-1],
        ],
    )
    def test_any_other_spelling_is_not_a_signature(self, line: bytes) -> None:
        content = line + b"\n" + BODY
        assert split_signature(content, "#").line is None
        assert split_signature(content, "#").signed_bytes == content

    def test_capital_digits_in_the_hash_are_not_a_signature(self) -> None:
        content_hash = hashlib.sha256(BODY).hexdigest().encode()
        assert line_of(SIGNED.replace(content_hash, content_hash.upper())) is None

    def test_a_signature_has_one_base64_spelling(self) -> None:
        """Otherwise the unused bits of the last digit would allow sixteen."""
        head, _, tail = SIGNED.partition(b"==:")
        digit = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".index(head[-1:])
        other = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[digit + 1]
        assert line_of(head[:-1] + bytes([other]) + b"==:" + tail) is None

    def test_a_line_without_a_line_ending_is_not_a_signature(self) -> None:
        assert line_of(LINE) is None

    def test_a_comment_of_another_language_is_not_a_signature(self) -> None:
        assert line_of(SIGNED, "//") is None
        assert line_of(KEY.sign(BODY, "//"), "#") is None

    def test_a_comment_sign_is_not_a_pattern(self) -> None:
        assert line_of(SIGNED, ".") is None

    def test_malformed_lines_are_recognised(self) -> None:
        assert has_broken_line(LINE + b" \n" + BODY, "#")
        assert has_broken_line(b"#!/bin/sh\n# rye:signed:\n", "#")
        assert not has_broken_line(SIGNED, "#")
        assert not has_broken_line(BODY, "#")
        assert not has_broken_line(BODY + SIGNED, "#")


@MODEST
@given(content=st.binary(max_size=200), comment=st.sampled_from(["#", "//", "--", "REM"]))
def test_signing_keeps_all_content_and_can_be_verified(content: bytes, comment: str) -> None:
    """Only a malformed line in the place of the signature is removed."""
    signed = KEY.sign(content, comment)
    line, signed_bytes, content_hash = split_signature(signed, comment)
    assert line is not None
    assert line.content_hash == content_hash
    assert verify_signature(line.signed_digest, line.signature, KEY.public)
    if not has_broken_line(content, comment) and b"#!" not in content:
        assert signed_bytes == content


@MODEST
@given(
    shebang=st.sampled_from([b"", b"#!/bin/sh\n", BOM, BOM + b"#!/bin/sh\r\n"]),
    position=st.integers(min_value=0, max_value=400),
    bit=st.integers(min_value=0, max_value=7),
)
def test_no_flipped_bit_goes_unnoticed(shebang: bytes, position: int, bit: int) -> None:
    signed = bytearray(KEY.sign(shebang + BODY))
    position %= len(signed)
    signed[position] ^= 1 << bit
    line, _, content_hash = split_signature(bytes(signed), "#")
    assert (
        line is None
        or line.content_hash != content_hash
        or line.fingerprint != KEY.fingerprint
        or not verify_signature(line.signed_digest, line.signature, KEY.public)
    )


def test_reading_a_line_loads_no_cryptographic_library() -> None:
    code = (
        "import sys; from rye.trust.signature import split_signature; "
        "split_signature(b'x', '#'); sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
