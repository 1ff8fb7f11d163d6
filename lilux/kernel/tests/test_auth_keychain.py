"""Tokens in a keychain: which backends are used, and how failures are reported."""

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from lilux.primitives.errors import AuthError, ConfigurationError, LiluxError
from lilux.runtime.auth import AuthStore
from lilux.runtime.auth.files import acquire_lock, locked, release_lock
from lilux.runtime.auth.keychain import find_keychain, is_recommended


class MemoryKeychain:
    """A keychain in memory, with the methods of a keyring backend."""

    def __init__(self) -> None:
        self.secrets: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str, /) -> str | None:
        return self.secrets.get((service, username))

    def set_password(self, service: str, username: str, password: str, /) -> None:
        self.secrets[service, username] = password

    def delete_password(self, service: str, username: str, /) -> None:
        del self.secrets[service, username]


class LockedKeychain:
    """A locked keychain; its errors contain its arguments, as those of some backends do."""

    def get_password(self, service: str, username: str, /) -> str | None:
        raise RuntimeError(f"{service} {username} is locked")

    def set_password(self, service: str, username: str, password: str, /) -> None:
        raise RuntimeError(f"cannot store {password}")

    def delete_password(self, service: str, username: str, /) -> None:
        raise RuntimeError("locked")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "auth"


def token_of(store: AuthStore, service: str) -> str:
    return asyncio.run(store.get_token(service))


def test_keychain_takes_precedence_over_the_folder(folder: Path) -> None:
    keychain = MemoryKeychain()
    store = AuthStore("app", folder, keychain=keychain)

    store.set_token("github", "access-secret")

    assert list(keychain.secrets) == [("app", "github")]
    assert not list(folder.glob("*.token"))
    assert not (folder / "key").exists()
    assert token_of(store, "github") == "access-secret"


def test_keychain_entry_is_cleared(folder: Path) -> None:
    keychain = MemoryKeychain()
    store = AuthStore("app", folder, keychain=keychain)
    store.set_token("github", "access-secret")

    store.clear_token("github")
    store.clear_token("github")

    assert keychain.secrets == {}
    assert store.is_authenticated("github") is False


def test_locks_of_a_keychain_without_a_folder_are_private_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = AuthStore(keychain=MemoryKeychain())

    store.set_token("github", "access-secret")

    (locks,) = tmp_path.iterdir()
    assert locks.name == f"lilux-locks-{os.geteuid()}"
    assert locks.stat().st_mode & 0o777 == 0o700
    assert token_of(store, "github") == "access-secret"


def test_lock_folder_created_by_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "theirs").mkdir(mode=0o700)
    locks = tmp_path / f"lilux-locks-{os.geteuid()}"
    locks.symlink_to(tmp_path / "theirs")

    with pytest.raises(ConfigurationError) as raised:
        AuthStore(keychain=MemoryKeychain()).set_token("github", "access-secret")

    assert str(raised.value) == (
        f"the lock folder {locks} is not private to you"
        "; pass storage_dir, a folder that you own, to AuthStore"
    )


def descriptors_of(path: Path) -> int:
    targets = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            targets.append(descriptor.readlink())
    return targets.count(path)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="reads descriptors in /proc")
def test_lock_file_removed_during_the_wait_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with ThreadPoolExecutor(1) as threads:
        with locked(path):
            waiting = threads.submit(acquire_lock, path)
            wait_until(lambda: descriptors_of(path) == 2)
            path.unlink()
        lock = waiting.result(20)

    assert os.path.samestat(os.fstat(lock), path.stat())
    release_lock(lock)


def test_entry_of_another_service_in_the_keychain_is_refused(folder: Path) -> None:
    keychain = MemoryKeychain()
    store = AuthStore("app", folder, keychain=keychain)
    store.set_token("internal", "access-internal")
    keychain.secrets["app", "public"] = keychain.secrets["app", "internal"]

    with pytest.raises(AuthError) as raised:
        token_of(store, "public")

    assert str(raised.value) == (
        "the data stored for 'public' is not a token"
        "; clear it with clear_token('public') and authenticate again"
    )


@pytest.mark.parametrize(
    "entry", ["", "{}", "nonsense", '{"service":"github","access_token":7}', '["access-secret"]']
)
def test_malformed_entry_in_the_keychain_is_refused(folder: Path, entry: str) -> None:
    keychain = MemoryKeychain()
    keychain.secrets["app", "github"] = entry

    with pytest.raises(AuthError) as raised:
        AuthStore("app", folder, keychain=keychain).is_authenticated("github")

    assert str(raised.value) == (
        "the data stored for 'github' is not a token"
        "; clear it with clear_token('github') and authenticate again"
    )


def test_locked_keychain_is_reported_without_the_secret(folder: Path) -> None:
    store = AuthStore("app", folder, keychain=LockedKeychain())

    with pytest.raises(LiluxError) as storing:
        store.set_token("github", "access-secret")
    with pytest.raises(LiluxError) as reading:
        store.is_authenticated("github")

    assert type(storing.value) is type(reading.value) is ConfigurationError
    advice = "; unlock it, or pass keychain=None and a storage_dir to AuthStore"
    assert str(storing.value) == (
        f"the keychain did not store the token of 'github' (RuntimeError){advice}"
    )
    assert str(reading.value) == (
        f"the keychain did not read the token of 'github' (RuntimeError){advice}"
    )
    assert storing.value.__suppress_context__


def test_without_keyring_there_is_no_keychain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert find_keychain() is None


class _Ranked:
    def __init__(self, priority: float) -> None:
        self.priority = priority


class _Unable:
    @property
    def priority(self) -> float:
        raise RuntimeError("no session bus")


@pytest.mark.parametrize(
    ("backend", "verdict"),
    [(_Ranked(5), True), (_Ranked(1), True), (_Ranked(0.5), False), (_Ranked(-1), False)],
    ids=["os", "lowest", "plain text", "null"],
)
def test_only_recommended_backends_are_used(backend: object, verdict: bool) -> None:
    assert is_recommended(backend) is verdict


def test_backend_that_raises_from_its_priority_is_not_used() -> None:
    assert is_recommended(_Unable()) is False


def test_real_keyring_backend_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    base = pytest.importorskip("keyring.backend").KeyringBackend
    backend = type("MemoryBackend", (MemoryKeychain, base), {"priority": 9})()
    before = keyring.get_keyring()
    keyring.set_keyring(backend)
    try:
        store = AuthStore("app", folder)
        store.set_token("github", "access-secret")
        assert list(backend.secrets) == [("app", "github")]
        assert token_of(store, "github") == "access-secret"
    finally:
        keyring.set_keyring(before)
