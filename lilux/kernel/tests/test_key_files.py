"""The two files of a key pair: modes, refused files, and concurrent callers."""

import hashlib
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from lilux.primitives.errors import KeyFileError
from lilux.primitives.signing import (
    ensure_keypair,
    generate_keypair,
    load_keypair,
    save_keypair,
    sign_hash,
    verify_signature,
)
from messages import exactly

HASH = hashlib.sha256(b"content").hexdigest()
PRIVATE, PUBLIC = generate_keypair()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def foreign_pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    return (
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    )


def encrypted_private() -> bytes:
    key = ed25519.Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))


class TestSaving:
    def test_a_saved_pair_is_loaded_again(self, tmp_path: Path) -> None:
        save_keypair(PRIVATE, PUBLIC, tmp_path / "keys")
        assert load_keypair(tmp_path / "keys") == (PRIVATE, PUBLIC)
        assert load_keypair(str(tmp_path / "keys")) == (PRIVATE, PUBLIC)

    @pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
    def test_modes_do_not_depend_on_the_umask(self, tmp_path: Path, mask: int) -> None:
        with umask(mask):
            save_keypair(PRIVATE, PUBLIC, tmp_path / "keys")
        assert mode_of(tmp_path / "keys") == 0o700
        assert mode_of(tmp_path / "keys" / "private_key.pem") == 0o600
        assert mode_of(tmp_path / "keys" / "public_key.pem") == 0o644
        assert len(list((tmp_path / "keys").iterdir())) == 2

    def test_a_readable_folder_is_made_private_before_a_key_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tmp_path.chmod(0o755)
        folder_modes: list[int] = []
        file_modes: list[int] = []
        real_write = os.write

        def watching_write(fd: int, data: bytes) -> int:
            folder_modes.append(mode_of(tmp_path))
            file_modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
            return real_write(fd, data)

        monkeypatch.setattr(os, "write", watching_write)
        with umask(0):
            save_keypair(PRIVATE, PUBLIC, tmp_path)
        assert folder_modes == [0o700, 0o700]
        assert file_modes == [0o600, 0o644]

    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
    def test_a_folder_writable_by_others_is_refused_and_unchanged(
        self, tmp_path: Path, mode: int
    ) -> None:
        folder = tmp_path / "with blank"
        folder.mkdir()
        folder.chmod(mode)
        message = (
            f"the folder {folder} is writable by other users (mode {mode:04o}); "
            f"check its contents, then run: chmod 700 {shlex.quote(str(folder))}"
        )
        with pytest.raises(KeyFileError, match=exactly(message)):
            save_keypair(PRIVATE, PUBLIC, folder)
        with pytest.raises(KeyFileError, match=exactly(message)):
            ensure_keypair(folder)
        assert (mode_of(folder), list(folder.iterdir())) == (mode, [])

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
    def test_a_folder_of_another_user_is_refused(self, tmp_path: Path) -> None:
        folder = tmp_path / "keys"
        folder.mkdir(mode=0o700)
        os.chown(folder, 65534, 65534)
        message = f"the folder {folder} belongs to another user; pass a folder that you own"
        with pytest.raises(KeyFileError, match=exactly(message)):
            save_keypair(PRIVATE, PUBLIC, folder)

    def test_saving_replaces_a_readable_private_key_by_a_private_one(self, tmp_path: Path) -> None:
        (tmp_path / "private_key.pem").write_bytes(b"old")
        (tmp_path / "private_key.pem").chmod(0o666)
        save_keypair(PRIVATE, PUBLIC, tmp_path)
        assert mode_of(tmp_path / "private_key.pem") == 0o600
        assert load_keypair(tmp_path) == (PRIVATE, PUBLIC)

    def test_an_interrupted_save_leaves_no_mixed_pair(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save_keypair(PRIVATE, PUBLIC, tmp_path)
        new_private, new_public = generate_keypair()
        real_rename = os.rename

        def rename(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
            if target == "public_key.pem":
                raise KeyboardInterrupt
            real_rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        monkeypatch.setattr(os, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            save_keypair(new_private, new_public, tmp_path)
        monkeypatch.undo()
        assert ensure_keypair(tmp_path) == (new_private, new_public)

    def test_two_keys_of_different_pairs_are_not_saved(self, tmp_path: Path) -> None:
        message = "public_pem does not belong to private_pem; pass both keys of one pair"
        with pytest.raises(ValueError, match=exactly(message)):
            save_keypair(PRIVATE, generate_keypair()[1], tmp_path / "keys")
        assert not (tmp_path / "keys").exists()

    def test_another_kind_of_public_key_is_not_saved(self, tmp_path: Path) -> None:
        message = "not the PEM of an Ed25519 public key; generate a pair with generate_keypair()"
        with pytest.raises(ValueError, match=exactly(message)):
            save_keypair(PRIVATE, foreign_pair()[1], tmp_path / "keys")
        assert not (tmp_path / "keys").exists()

    def test_a_path_that_cannot_be_a_key_folder_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        folder = tmp_path / "file" / "keys"
        message = (
            f"cannot prepare {folder}: Not a directory; "
            "use a key folder that you own and can write to"
        )
        with pytest.raises(KeyFileError, match=exactly(message)):
            save_keypair(PRIVATE, PUBLIC, folder)
        with pytest.raises(KeyFileError, match=exactly(message)):
            ensure_keypair(folder)
        with pytest.raises(KeyFileError, match=exactly(message.replace("prepare", "open"))):
            load_keypair(folder)


class TestLoading:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        save_keypair(PRIVATE, PUBLIC, tmp_path)
        return tmp_path

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o601, 0o660])
    def test_a_private_key_accessible_to_others_is_refused_with_the_command_that_fixes_it(
        self, folder: Path, mode: int
    ) -> None:
        path = folder / "private_key.pem"
        path.chmod(mode)
        message = (
            f"private key {path} is accessible to other users (mode {mode:04o}); "
            f"run: chmod 600 {path}"
        )
        for load in (load_keypair, ensure_keypair):
            with pytest.raises(KeyFileError, match=exactly(message)):
                load(folder)

    def test_the_command_in_the_message_fixes_it(self, tmp_path: Path) -> None:
        folder = tmp_path / "it's a folder"
        save_keypair(PRIVATE, PUBLIC, folder)
        (folder / "private_key.pem").chmod(0o644)
        with pytest.raises(KeyFileError) as caught:
            load_keypair(folder)
        command = str(caught.value).partition("run: ")[2]
        subprocess.run(shlex.split(command), check=True, timeout=60)
        assert load_keypair(folder) == (PRIVATE, PUBLIC)

    def test_a_missing_folder_or_private_key_is_named(self, folder: Path) -> None:
        (folder / "private_key.pem").unlink()
        for place in (folder, folder / "nowhere"):
            path = place / "private_key.pem"
            message = f"no private key at {path}; ensure_keypair() creates a pair"
            with pytest.raises(KeyFileError, match=exactly(message)):
                load_keypair(place)
        assert not (folder / "nowhere").exists()

    def test_a_missing_public_key_is_named(self, folder: Path) -> None:
        path = folder / "public_key.pem"
        path.unlink()
        message = f"no public key at {path}; ensure_keypair() derives it from the private key"
        with pytest.raises(KeyFileError, match=exactly(message)):
            load_keypair(folder)

    def test_a_public_key_of_another_pair_is_refused(self, folder: Path) -> None:
        path = folder / "public_key.pem"
        path.write_bytes(generate_keypair()[1])
        message = (
            f"{path} does not belong to {folder / 'private_key.pem'}; "
            "remove it, and ensure_keypair() derives it from the private key"
        )
        for load in (load_keypair, ensure_keypair):
            with pytest.raises(KeyFileError, match=exactly(message)):
                load(folder)

    @pytest.mark.parametrize("content", [b"", b"garbage", PRIVATE, foreign_pair()[1]])
    def test_a_file_that_is_not_a_public_key_is_refused(self, folder: Path, content: bytes) -> None:
        path = folder / "public_key.pem"
        path.write_bytes(content)
        message = (
            f"{path} is not the PEM of an Ed25519 public key; "
            "remove it, and ensure_keypair() derives it from the private key"
        )
        with pytest.raises(KeyFileError, match=exactly(message)):
            load_keypair(folder)

    @pytest.mark.parametrize(
        "content", [b"", b"garbage", PUBLIC, foreign_pair()[0], encrypted_private()]
    )
    def test_a_file_that_is_not_a_private_key_is_refused_and_kept(
        self, folder: Path, content: bytes
    ) -> None:
        path = folder / "private_key.pem"
        path.write_bytes(content)
        message = (
            f"{path} is not the PKCS8 PEM of an Ed25519 private key without a password; "
            "restore it from a backup, or remove both key files to start with a new pair"
        )
        for load in (load_keypair, ensure_keypair):
            with pytest.raises(KeyFileError, match=exactly(message)):
                load(folder)
        assert path.read_bytes() == content

    def test_a_file_too_large_for_a_key_is_not_read_whole(self, folder: Path) -> None:
        path = folder / "public_key.pem"
        path.write_bytes(PUBLIC + b"\n" * 20_000)
        message = f"public key {path} is larger than 16384 bytes; replace it with the key file"
        with pytest.raises(KeyFileError, match=exactly(message)):
            load_keypair(folder)

    @pytest.mark.parametrize("kind", ["fifo", "folder"])
    def test_a_path_that_is_not_a_file_is_refused_without_blocking(
        self, folder: Path, kind: str
    ) -> None:
        path = folder / "private_key.pem"
        path.unlink()
        if kind == "fifo":
            os.mkfifo(path, 0o600)
        else:
            path.mkdir()
        message = f"private key {path} is not a regular file; replace it with the key file"
        with pytest.raises(KeyFileError, match=exactly(message)):
            load_keypair(folder)

    @pytest.mark.parametrize("kind", ["private", "public"])
    def test_a_key_that_is_a_symbolic_link_is_refused(self, folder: Path, kind: str) -> None:
        path = folder / f"{kind}_key.pem"
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
        message = f"{kind} key {path} is a symbolic link; replace it with the file"
        for load in (load_keypair, ensure_keypair):
            with pytest.raises(KeyFileError, match=exactly(message)):
                load(folder)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    @pytest.mark.parametrize("kind", ["private", "public"])
    def test_a_key_of_another_user_is_refused(self, folder: Path, kind: str) -> None:
        path = folder / f"{kind}_key.pem"
        os.chown(path, 65534, 65534)
        message = f"{kind} key {path} belongs to another user; replace it with the key file"
        with pytest.raises(KeyFileError, match=exactly(message)):
            load_keypair(folder)

    def test_no_error_shows_the_private_key(self, folder: Path) -> None:
        secret = PRIVATE.decode().splitlines()[1]
        (folder / "private_key.pem").write_bytes(PRIVATE.replace(b"END", b"DNE"))
        with pytest.raises(KeyFileError) as caught:
            load_keypair(folder)
        assert secret not in str(caught.value)
        assert caught.value.__suppress_context__


class TestEnsuring:
    def test_generates_a_pair_once(self, tmp_path: Path) -> None:
        pair = ensure_keypair(tmp_path / "deep" / "keys")
        assert ensure_keypair(tmp_path / "deep" / "keys") == pair
        assert load_keypair(tmp_path / "deep" / "keys") == pair
        assert verify_signature(HASH, sign_hash(HASH, pair[0]), pair[1])
        assert mode_of(tmp_path / "deep" / "keys") == 0o700
        assert mode_of(tmp_path / "deep" / "keys" / "private_key.pem") == 0o600
        assert mode_of(tmp_path / "deep" / "keys" / "public_key.pem") == 0o644

    def test_derives_a_missing_public_key(self, tmp_path: Path) -> None:
        save_keypair(PRIVATE, PUBLIC, tmp_path)
        (tmp_path / "public_key.pem").unlink()
        assert ensure_keypair(tmp_path) == (PRIVATE, PUBLIC)
        assert (tmp_path / "public_key.pem").read_bytes() == PUBLIC

    def test_does_not_overwrite_a_public_key_without_a_private_key(self, tmp_path: Path) -> None:
        path = tmp_path / "public_key.pem"
        path.write_bytes(PUBLIC)
        message = (
            f"{path} has no private_key.pem next to it; "
            "restore the private key, or remove the public key to start with a new pair"
        )
        with pytest.raises(KeyFileError, match=exactly(message)):
            ensure_keypair(tmp_path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["public_key.pem"]

    def test_concurrent_processes_get_the_same_pair(self, tmp_path: Path) -> None:
        folders = [tmp_path / str(number) for number in range(12)]
        code = (
            "import hashlib, sys\n"
            "from lilux.primitives.signing import ensure_keypair, generate_keypair\n"
            "generate_keypair()\n"
            "print('ready', flush=True)\n"
            "sys.stdin.read()\n"
            "for folder in sys.argv[1:]:\n"
            "    print(hashlib.sha256(b''.join(ensure_keypair(folder))).hexdigest())\n"
        )
        command = [sys.executable, "-c", code, *map(str, folders)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [subprocess.Popen(command, **pipes) for _ in range(4)]  # type: ignore[call-overload]  # a dict has one value type
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.close()
        answers = []
        for process in processes:
            with process:
                answers.append(process.stdout.read().split())
            assert process.returncode == 0
        on_disk = [hashlib.sha256(b"".join(load_keypair(one))).hexdigest() for one in folders]
        assert answers == [on_disk] * len(processes)
