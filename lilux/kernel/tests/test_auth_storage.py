"""Tokens in a folder: private, encrypted, and refused if tampered with."""

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lilux.primitives.errors import AuthError, ConfigurationError, KeyFileError
from lilux.runtime.auth import AuthStore
from lilux.runtime.auth.files import name_digest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "auth"


def folder_store(folder: Path, name: str = "lilux") -> AuthStore:
    return AuthStore(name, folder, keychain=None)


def token_file(folder: Path, service: str, name: str = "lilux") -> Path:
    return folder / f"{name_digest(name, service)}.token"


def token_of(store: AuthStore, service: str) -> str:
    return asyncio.run(store.get_token(service))


def test_token_in_a_folder_is_found_by_another_store(folder: Path) -> None:
    folder_store(folder).set_token("github", "access-secret")

    assert token_of(folder_store(folder), "github") == "access-secret"


def test_no_file_contains_a_secret_in_plain_text(folder: Path) -> None:
    folder_store(folder).set_token(
        "github",
        "access-secret",
        "refresh-secret",
        token_url="https://auth.test/token",
        client_id="client",
        client_secret="client-secret",
    )

    content = b"".join(path.read_bytes() for path in folder.iterdir())
    for secret in (b"access-secret", b"refresh-secret", b"client-secret", b"github"):
        assert secret not in content


def test_folder_and_files_are_private_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        folder_store(folder).set_token("github", "access-secret")
    finally:
        os.umask(before)

    assert folder.stat().st_mode & 0o777 == 0o700
    files = list(folder.iterdir())
    assert {path.name for path in files} >= {"key", token_file(folder, "github").name}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_existing_folder_is_made_private(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)

    folder_store(folder).set_token("github", "access-secret")

    assert folder.stat().st_mode & 0o777 == 0o700


def test_folder_writable_by_others_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "with blank"
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(KeyFileError) as raised:
        folder_store(folder).set_token("github", "access-secret")

    assert str(raised.value) == (
        f"the folder {folder} is writable by other users (mode 0777); "
        f"check its contents, then run: chmod 700 {shlex.quote(str(folder))}"
    )
    assert list(folder.iterdir()) == []


def test_folder_that_is_a_file_is_refused(folder: Path) -> None:
    folder.write_text("not a folder")

    with pytest.raises(ConfigurationError) as raised:
        folder_store(folder).set_token("github", "access-secret")

    assert str(raised.value) == (
        f"cannot use the folder {folder} (file exists); pass a folder that you can write to"
    )


def test_keys_of_two_folders_differ_and_are_random(tmp_path: Path) -> None:
    keys = []
    for name in ("one", "two"):
        folder_store(tmp_path / name).set_token("github", "access-secret")
        keys.append((tmp_path / name / "key").read_bytes())

    assert len(keys[0]) == len(keys[1]) == 32
    assert keys[0] != keys[1]


def test_one_key_serves_all_tokens_of_a_folder(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-1")
    key = (folder / "key").read_bytes()
    store.set_token("gitlab", "access-2")

    assert (folder / "key").read_bytes() == key
    assert token_of(store, "github") == "access-1"
    assert token_of(store, "gitlab") == "access-2"


def test_concurrent_processes_create_one_key(folder: Path) -> None:
    script = (
        "import sys\n"
        "from lilux.runtime.auth import AuthStore\n"
        "store = AuthStore(storage_dir=sys.argv[1], keychain=None)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "store.set_token(sys.argv[2], 'access-' + sys.argv[2])\n"
    )
    services = [f"service-{number}" for number in range(4)]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(folder), service],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for service in services
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        child.communicate(timeout=20)
        assert child.returncode == 0

    store = folder_store(folder)
    assert [token_of(store, service) for service in services] == [
        f"access-{service}" for service in services
    ]


def test_key_accessible_to_others_is_refused_with_the_command_that_fixes_it(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    (folder / "key").chmod(0o640)
    key = folder / "key"
    message = f"{key} is accessible to other users (mode 0640); run: chmod 600 {key}"

    with pytest.raises(KeyFileError) as reading:
        token_of(store, "github")
    with pytest.raises(KeyFileError) as storing:
        store.set_token("github", "another")

    assert str(reading.value) == str(storing.value) == message


def test_key_of_another_length_is_refused(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    (folder / "key").write_bytes(b"short")

    with pytest.raises(KeyFileError) as raised:
        token_of(store, "github")

    assert str(raised.value) == (
        f"{folder / 'key'} is not a key of 32 bytes"
        "; restore it, or remove it and authenticate again"
    )


def test_missing_key_is_reported_and_a_new_token_can_be_stored(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    (folder / "key").unlink()

    with pytest.raises(AuthError) as raised:
        store.is_authenticated("github")

    assert str(raised.value) == (
        f"the token of 'github' cannot be read: {folder / 'key'} is missing"
        "; clear it with clear_token('github') and authenticate again"
    )
    store.set_token("github", "access-new")
    assert token_of(store, "github") == "access-new"


def test_key_that_is_a_symbolic_link_is_refused(folder: Path, tmp_path: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    (folder / "key").rename(tmp_path / "elsewhere")
    (folder / "key").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(KeyFileError) as raised:
        token_of(store, "github")

    assert str(raised.value) == (f"{folder / 'key'} is a symbolic link; replace it with the file")


def test_fifo_in_place_of_a_token_does_not_block(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    path = token_file(folder, "github")
    path.unlink()
    os.mkfifo(path, 0o600)

    with pytest.raises(KeyFileError) as raised:
        token_of(store, "github")

    assert str(raised.value) == f"{path} is not a regular file; remove it and authenticate again"


def test_huge_token_file_is_not_read(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    path = token_file(folder, "github")
    os.truncate(path, 1024**3)

    with pytest.raises(KeyFileError) as raised:
        token_of(store, "github")

    assert str(raised.value) == (
        f"{path} is larger than 1048576 bytes; remove it and authenticate again"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_key_of_another_user_is_refused(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    os.chown(folder / "key", 65534, 65534)

    with pytest.raises(KeyFileError) as raised:
        token_of(store, "github")

    assert str(raised.value) == (
        f"{folder / 'key'} belongs to another user; remove it and authenticate again"
    )


def tampered(folder: Path, service: str) -> str:
    return (
        f"the token of {service!r} in {token_file(folder, service)} was changed, belongs to"
        " another service or was written with another key"
        f"; clear it with clear_token({service!r}) and authenticate again"
    )


@pytest.mark.parametrize("position", [0, 20, -1], ids=["format", "nonce", "tag"])
def test_changed_byte_is_noticed(folder: Path, position: int) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    content = bytearray(token_file(folder, "github").read_bytes())
    content[position] ^= 1
    token_file(folder, "github").write_bytes(content)

    with pytest.raises(AuthError) as raised:
        token_of(store, "github")

    assert str(raised.value) == tampered(folder, "github")


@pytest.mark.parametrize("length", [0, 5, 14, 20, 30])
def test_truncated_file_is_noticed(folder: Path, length: int) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    os.truncate(token_file(folder, "github"), length)

    with pytest.raises(AuthError) as raised:
        token_of(store, "github")

    assert str(raised.value) == tampered(folder, "github")


def test_swapped_files_of_two_services_are_noticed(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("internal", "access-internal")
    store.set_token("public", "access-public")
    token_file(folder, "internal").replace(token_file(folder, "public"))

    with pytest.raises(AuthError) as raised:
        token_of(store, "public")

    assert str(raised.value) == tampered(folder, "public")


def test_file_of_another_store_in_the_same_folder_is_noticed(folder: Path) -> None:
    folder_store(folder, "one").set_token("github", "access-one")
    token_file(folder, "github", "one").replace(token_file(folder, "github", "two"))

    with pytest.raises(AuthError):
        token_of(folder_store(folder, "two"), "github")


def test_tampered_token_can_be_cleared(folder: Path) -> None:
    store = folder_store(folder)
    store.set_token("github", "access-secret")
    token_file(folder, "github").write_bytes(b"nonsense")

    store.clear_token("github")

    assert store.is_authenticated("github") is False


@pytest.mark.parametrize("service", ["../../escape", "/etc/passwd", "a/b", "..", "x" * 5000, "é"])
def test_service_name_never_becomes_a_path(tmp_path: Path, service: str) -> None:
    folder = tmp_path / "deep" / "auth"
    store = folder_store(folder)

    store.set_token(service, "access-secret")

    assert token_of(store, service) == "access-secret"
    assert list(tmp_path.iterdir()) == [tmp_path / "deep"]
    assert list((tmp_path / "deep").iterdir()) == [folder]
    assert all(path.is_file() and len(path.name) < 100 for path in folder.iterdir())


def test_stores_of_different_names_do_not_see_each_other(folder: Path) -> None:
    folder_store(folder, "one").set_token("github", "access-one")

    assert folder_store(folder, "two").is_authenticated("github") is False


def test_relative_folder_does_not_follow_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = AuthStore(storage_dir="auth", keychain=None)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    store.set_token("github", "access-secret")

    assert (tmp_path / "auth" / "key").exists()


def test_storing_without_keychain_and_folder_is_reported() -> None:
    store = AuthStore(keychain=None)

    with pytest.raises(ConfigurationError) as raised:
        store.set_token("github", "access-secret")

    assert str(raised.value) == (
        "the token of 'github' cannot be stored: no keychain and no folder"
        "; install lilux[keychain] for the OS keychain, or pass storage_dir to AuthStore"
    )


def test_reading_without_keychain_and_folder_finds_nothing() -> None:
    store = AuthStore(keychain=None)

    assert store.is_authenticated("github") is False
    store.clear_token("github")


def test_reading_and_clearing_create_no_folder(folder: Path) -> None:
    store = folder_store(folder)

    store.is_authenticated("github")
    store.clear_token("github")

    assert not folder.exists()
