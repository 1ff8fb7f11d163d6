"""Loading lockfiles: a malformed one is refused with its path, the field and what to do."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.errors import LiluxError, LockfileError
from lilux.primitives.lockfile import Lockfile, LockfileManager
from lockfiles import DOCUMENTED, document, entry, lockfile
from messages import exactly

MANAGER = LockfileManager()
RESTORE = "restore it, or delete it and lock the tool again"
TEXT = DOCUMENTED.encode()


def with_field(field: bytes) -> bytes:
    """The documented lockfile with one more field at the start."""
    return b"{" + field + b"," + TEXT[1:]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tool@1.0.0.lock.json"


def load_text(path: Path, text: str | bytes) -> Lockfile:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return MANAGER.load(path)


def test_a_missing_file_is_not_a_lockfile_error(path: Path) -> None:
    assert not MANAGER.exists(path)
    with pytest.raises(FileNotFoundError) as caught:
        MANAGER.load(path)
    assert str(caught.value) == (f"[Errno 2] no lockfile; lock the tool to create it: '{path}'")
    assert not isinstance(caught.value, LockfileError)


@pytest.mark.parametrize("obstacle", ["a name that is too long", "a loop of links"])
def test_an_inaccessible_lockfile_is_not_treated_as_missing(tmp_path: Path, obstacle: str) -> None:
    path = tmp_path / ("x" * 300)
    reason = "File name too long"
    if obstacle == "a loop of links":
        path, reason = tmp_path / "loop", "Too many levels of symbolic links"
        path.symlink_to(path)
    assert MANAGER.exists(path) is True
    message = (
        f"lockfile {path}: cannot be read ({reason}); make it a regular file that you can read"
    )
    with pytest.raises(LockfileError, match=exactly(message)):
        MANAGER.load(path)


def test_a_path_that_cannot_exist_is_missing(path: Path, tmp_path: Path) -> None:
    path.write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing")
    assert MANAGER.exists(path) is True
    for absent in (path / "below", tmp_path / "dangling", tmp_path / "a\0b"):
        assert MANAGER.exists(absent) is False


def test_the_error_is_a_lilux_error_and_a_value_error() -> None:
    assert issubclass(LockfileError, LiluxError)
    assert issubclass(LockfileError, ValueError)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        *(
            ({name: ...}, f"missing required field '{name}'")
            for name in ("lockfile_version", "generated_at", "root", "resolved_chain")
        ),
        ({"lockfile_version": "1"}, "expected int, got str in 'lockfile_version'"),
        ({"lockfile_version": 1.0}, "expected int, got float in 'lockfile_version'"),
        ({"lockfile_version": True}, "expected int, got bool in 'lockfile_version'"),
        ({"generated_at": 5}, "expected str, got int in 'generated_at'"),
        ({"root": []}, "expected object, got array in 'root'"),
        ({"root": {}}, "missing required field 'root.tool_id'"),
        (
            {"root": {"tool_id": "t", "version": None, "integrity": "i"}},
            "expected str, got null in 'root.version'",
        ),
        (
            {"root": {"tool_id": "t", "version": "1", "integrity": ""}},
            "expected str of length >= 1 in 'root.integrity'",
        ),
        ({"resolved_chain": {}}, "expected array, got object in 'resolved_chain'"),
        ({"resolved_chain": ["a"]}, "expected object, got str in 'resolved_chain[0]'"),
        (
            {"resolved_chain": [entry(), entry(), entry(integrity=7)]},
            "expected str, got int in 'resolved_chain[2].integrity'",
        ),
        (
            {"resolved_chain": [entry(), entry(integrity=...)]},
            "missing required field 'resolved_chain[1].integrity'",
        ),
        (
            {"resolved_chain": [entry(integrity=None)]},
            "expected str, got null in 'resolved_chain[0].integrity'",
        ),
        (
            {"resolved_chain": [entry(integrity="")]},
            "expected str of length >= 1 in 'resolved_chain[0].integrity'",
        ),
        *(
            (
                {"resolved_chain": [entry(**{name: 1})]},
                f"expected str, got int in 'resolved_chain[0].{name}'",
            )
            for name in ("item_id", "tool_id", "space", "version")
        ),
        (
            {"resolved_chain": [entry(executor_id=[])]},
            "expected str | null, got array in 'resolved_chain[0].executor_id'",
        ),
        ({"registry": "x"}, "expected object | null, got str in 'registry'"),
        ({"verified_deps": []}, "expected object | null, got array in 'verified_deps'"),
    ],
)
def test_a_malformed_field_is_named_by_its_path(
    path: Path, changes: dict[str, Any], fault: str
) -> None:
    message = f"lockfile {path}: {fault}; {RESTORE}"
    with pytest.raises(LockfileError, match=exactly(message)):
        load_text(path, json.dumps(document(**changes)))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"", "not valid JSON (input data was truncated)"),
        (b"lock", "not valid JSON (invalid character (byte 0))"),
        (b"[]", "expected object, got array at the top"),
        (b"null", "expected object, got null at the top"),
        (TEXT + b"x", f"not valid JSON (trailing characters (byte {len(TEXT) + 1}))"),
        (b"\xef\xbb\xbf" + TEXT, "not valid JSON (invalid character (byte 0))"),
        (DOCUMENTED.encode("utf-16"), "not valid JSON (invalid character (byte 0))"),
        (TEXT.replace(b"my_tool", b"\xed\xa0\x80"), "not UTF-8 text"),
        (with_field(b'"z": "\xff"'), "not UTF-8 text"),
        (with_field(b'"z": NaN'), "not valid JSON (invalid character (byte 6))"),
        (with_field(b'"z": 1e999'), "number out of range in '[...]'"),
        (
            with_field(b'"verified_deps": {"n": 1e999}'),
            "number out of range in 'verified_deps[...]'",
        ),
        (with_field(b'"z": ' + b"[" * 5000 + b"]" * 5000), "nested too deeply"),
        (with_field(b'"z": ' + b"9" * 5000), "integer value out of range in '[...]'"),
    ],
)
def test_a_file_that_is_not_json_is_refused(path: Path, text: bytes, fault: str) -> None:
    with pytest.raises(LockfileError, match=exactly(f"lockfile {path}: {fault}; {RESTORE}")):
        load_text(path, text)


@pytest.mark.parametrize("version", [0, 2, -1, 10**30])
@pytest.mark.parametrize("other_shape", [True, False])
def test_another_version_is_refused_with_a_hint(
    path: Path, version: int, other_shape: bool
) -> None:
    text = json.dumps(
        {"lockfile_version": version, "graph": {}}
        if other_shape
        else document(lockfile_version=version)
    )
    message = (
        f"lockfile {path}: version {version} is not supported, only 1; "
        "upgrade lilux, or delete it and lock the tool again"
    )
    with pytest.raises(LockfileError, match=exactly(message)):
        load_text(path, text)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"lockfile_version"', '"lockfile_version": 1, "lockfile_version"', "lockfile_version"),
        ('"root": {', '"root": {"tool_id": "x", ', "root.tool_id"),
        (
            '"tool_id": "sub',
            '"integrity": "forged", "tool_id": "sub',
            "resolved_chain[0].integrity",
        ),
        ('"url"', '"url": "x", "url"', "registry.url"),
        ('"url"', '"a b": {"c": [1, {"d": 1, "d": 1}]}, "url"', 'registry["a b"].c[1].d'),
        ('"url"', '"u\\u0072l": "x", "url"', "registry.url"),
        ('"url"', '"q": "\\u0022\\u0022", "url": 1, "url"', "registry.url"),
        ('"registry"', '"verified_deps": null, "registry": null, "registry"', "registry"),
        ('"registry"', '"new": {"a": 1, "a": 2}, "registry"', "new.a"),
        ('"registry"', '"new": 1, "new": 1, "registry"', "new"),
    ],
)
def test_a_duplicate_key_is_refused(path: Path, old: str, new: str, place: str) -> None:
    text = DOCUMENTED.replace(old, new, 1)
    assert text != DOCUMENTED
    message = f"lockfile {path}: duplicate key in '{place}'; {RESTORE}"
    with pytest.raises(LockfileError, match=exactly(message)):
        load_text(path, text)


def test_every_strict_prefix_of_a_lockfile_is_refused(path: Path) -> None:
    MANAGER.save(lockfile(registry={"n": 1, "s": 'quo"te'}, extra={"x": [1]}), path)
    # Without its final newline the document is still complete.
    whole = path.read_bytes().rstrip(b"\n")
    load_text(path, whole)
    for length in range(len(whole)):
        with pytest.raises(LockfileError):
            load_text(path, whole[:length])


def test_a_file_above_the_limit_is_not_read_completely(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(DOCUMENTED)
    os.truncate(path, 64 * 1024 * 1024)
    sizes: list[int] = []
    real_read = os.read

    def counting_read(fd: int, length: int) -> bytes:
        data = real_read(fd, length)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "read", counting_read)
    message = f"lockfile {path}: larger than 4194304 bytes; {RESTORE}"
    with pytest.raises(LockfileError, match=exactly(message)):
        MANAGER.load(path)
    assert sum(sizes) < 5_000_000


def test_a_file_of_the_maximum_size_is_read(path: Path) -> None:
    path.write_bytes(DOCUMENTED.encode().ljust(4 * 1024 * 1024))
    assert MANAGER.load(path).root.tool_id == "my_tool"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_path_that_is_not_a_file_is_refused_without_blocking(
    path: Path, make: Callable[[Path], None]
) -> None:
    make(path)
    message = (
        f"lockfile {path}: cannot be read (Not a regular file); "
        "make it a regular file that you can read"
    )
    with pytest.raises(LockfileError, match=exactly(message)):
        MANAGER.load(path)


def test_no_descriptor_is_left_open(path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    load_text(path, DOCUMENTED)
    with pytest.raises(LockfileError):
        load_text(path, "{")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
