"""atomic_write: readers see the old file or the whole new one, and no other file remains."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lilux.files.atomic import atomic_write


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_writes_a_new_file_and_no_other(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a", b"content")
    assert (tmp_path / "a").read_bytes() == b"content"
    assert names_in(tmp_path) == ["a"]


def test_replaces_an_old_file_and_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"the old and longer content")
    path.chmod(0o666)
    atomic_write(path, b"new", mode=0o600)
    assert path.read_bytes() == b"new"
    assert mode_of(path) == 0o600


def test_accepts_a_bare_name_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    atomic_write("a", b"x")
    assert names_in(tmp_path) == ["a"]


def test_accepts_the_longest_name_that_a_folder_allows(tmp_path: Path) -> None:
    atomic_write(tmp_path / ("n" * 255), b"x")
    assert names_in(tmp_path) == ["n" * 255]


def test_an_open_reader_keeps_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        atomic_write(path, b"new")
        assert reader.read() == b"old"


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_the_mode_is_exact_whatever_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    path = tmp_path / "a"
    with umask(mask):
        atomic_write(path, b"x", mode=mode)
    assert mode_of(path) == mode


@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_a_secret_is_never_readable_by_others_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    modes_at_open: list[int] = []
    modes_at_write: list[int] = []
    real_open, real_write = os.open, os.write

    def watching_open(*args: object, **kwargs: object) -> int:
        fd = real_open(*args, **kwargs)  # type: ignore[arg-type]  # passed on unchanged
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            modes_at_open.append(stat.S_IMODE(status.st_mode))
        return fd

    def watching_write(fd: int, data: bytes) -> int:
        modes_at_write.append(stat.S_IMODE(os.fstat(fd).st_mode))
        return real_write(fd, data)

    monkeypatch.setattr(os, "open", watching_open)
    monkeypatch.setattr(os, "write", watching_write)
    with umask(mask):
        atomic_write(tmp_path / "secret", b"s3cret", mode=0o600)
    assert [mode & 0o077 for mode in modes_at_open] == [0]
    assert modes_at_write == [0o600]


def test_the_file_is_synced_before_it_gets_its_name_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(fd: int) -> None:
        steps.append("sync folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "sync file")
        real_fsync(fd)

    def rename(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        steps.append("rename")
        real_rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    atomic_write(tmp_path / "a", b"x")
    assert steps == ["sync file", "rename", "sync folder"]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real_write(fd, data[:3]))
    atomic_write(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_create_only_leaves_an_existing_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"first")
    with pytest.raises(FileExistsError) as caught:
        atomic_write(path, b"second", create_only=True)
    assert str(caught.value) == f"[Errno 17] File exists: '{path}'"
    assert path.read_bytes() == b"first"
    assert names_in(tmp_path) == ["a"]


def test_create_only_creates(tmp_path: Path) -> None:
    atomic_write(tmp_path / "a", b"x", mode=0o600, create_only=True)
    assert (tmp_path / "a").read_bytes() == b"x"
    assert mode_of(tmp_path / "a") == 0o600
    assert names_in(tmp_path) == ["a"]


def test_a_symlink_is_replaced_and_its_target_untouched(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    link = tmp_path / "link"
    link.symlink_to(victim)
    atomic_write(link, b"new")
    assert victim.read_bytes() == b"untouched"
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"


def test_a_missing_folder_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write(tmp_path / "no" / "a", b"x")
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{tmp_path / 'no'}'"
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_path_without_a_file_name_is_refused(tmp_path: Path, name: str) -> None:
    path = f"{tmp_path}/{name}"
    with pytest.raises(IsADirectoryError) as caught:
        atomic_write(path, b"x")
    assert str(caught.value) == f"[Errno 21] not the name of a file; add one: '{path}'"


def test_a_folder_at_the_path_is_kept_and_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        atomic_write(tmp_path / "a", b"x")
    assert str(caught.value) == f"[Errno 21] Is a directory: '{tmp_path / 'a'}'"
    assert names_in(tmp_path) == ["a"]


def interrupt(_fd: int) -> None:
    raise KeyboardInterrupt


def fail(_fd: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(("fault", "error"), [(interrupt, KeyboardInterrupt), (fail, OSError)])
def test_a_fault_before_the_rename_leaves_only_the_old_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[int], None],
    error: type[BaseException],
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fault)
    with pytest.raises(error):
        atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["a"]


def test_an_interrupt_right_after_the_rename_is_raised_and_the_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_rename = os.rename

    def rename(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        real_rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names_in(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["link", "unlink"])
def test_an_interrupt_while_creating_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    real_step = getattr(os, step)

    def interrupted(*args: str, **folders: int) -> None:
        monkeypatch.undo()
        real_step(*args, **folders)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "a", b"new", create_only=True)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names_in(tmp_path) == ["a"]


def test_a_folder_that_cannot_be_synced_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_fsync = os.fsync

    def fsync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real_fsync(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    atomic_write(tmp_path / "a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    descriptors = Path("/proc/self/fd")
    before = len(names_in(descriptors))
    atomic_write(tmp_path / "a", b"x")
    with pytest.raises(FileExistsError):
        atomic_write(tmp_path / "a", b"x", create_only=True)
    assert len(names_in(descriptors)) == before


def test_a_full_disk_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    code = (
        "import sys\n"
        "from lilux.files.atomic import atomic_write\n"
        "try:\n"
        "    atomic_write(sys.argv[1], b'n' * 100_000)\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    limit = 10_000  # the system writes up to this size, then refuses
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"[Errno 27] File too large: '{path}'\n"
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["a"]


def test_a_killed_writer_leaves_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    size = 2_000_000
    code = (
        "import itertools, sys\n"
        "from lilux.files.atomic import atomic_write\n"
        "for round in itertools.count():\n"
        "    atomic_write(sys.argv[1], bytes([round % 256]) * int(sys.argv[2]))\n"
        "    print(round, flush=True)\n"
    )
    for lines_before_the_kill in (1, 2, 3):
        with subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(size)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(lines_before_the_kill):
                assert writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        content = path.read_bytes()
        assert len(content) == size
        assert content == content[:1] * size
