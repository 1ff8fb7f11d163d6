"""A confined job and files: what it may not read, write, execute or change."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confined_jobs import PYTHON, SECRET, ConfinedJobs, confined_jobs, users


@pytest.fixture(params=users())
def jobs(request: pytest.FixtureRequest) -> Iterator[ConfinedJobs]:
    """The jobs of root and of an ordinary user."""
    with confined_jobs(request.param) as jobs:
        yield jobs


def test_a_secret_outside_cannot_be_read(jobs: ConfinedJobs) -> None:
    assert jobs.error_of("open(a[0])", jobs.secret) == "EACCES"
    assert jobs.error_of("os.listdir(a[0])", jobs.outside) == "EACCES"
    assert jobs.client.exec("cat", str(jobs.secret)).stdout.decode() == SECRET


def test_the_files_of_another_user_cannot_be_read(jobs: ConfinedJobs) -> None:
    other = jobs.make_file("outside/other", SECRET)
    if os.geteuid() == 0:
        os.chown(other, 1 if jobs.uid == 0 else 0, -1)
    assert jobs.error_of("open(a[0])", other) == "EACCES"


def test_the_environment_of_another_process_cannot_be_read_through_proc(jobs: ConfinedJobs) -> None:
    other = jobs.client.send("exec", command="sleep", args=["600"], env={"TOKEN": SECRET})
    confinement = jobs.confinement(read=["/proc"])
    code = """if True:
        import os
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (os.getpid(), os.getppid()):
                try: print(open(f"/proc/{name}/environ").read())
                except OSError as error: print(type(error).__name__)
    """
    wanted = jobs.client.send(
        "exec", command=PYTHON, args=["-c", code], confinement=confinement, env_mode="exact", env={}
    )
    answer = jobs.client.receive()
    assert answer.id == wanted
    assert answer.header["success"], answer.stderr
    assert SECRET not in answer.stdout.decode()
    assert "PermissionError" in answer.stdout.decode()
    jobs.client.send("cancel", target=other)


@pytest.mark.parametrize(
    "attack",
    [
        "open(a[0] + '/new', 'w')",
        "open(a[0] + '/id_ed25519', 'a')",
        "os.truncate(a[0] + '/id_ed25519', 0)",
        "os.unlink(a[0] + '/id_ed25519')",
        "os.mkdir(a[0] + '/new')",
        "os.mkfifo(a[0] + '/new')",
        "os.symlink('/etc', a[0] + '/new')",
        "os.symlink(a[0], 'link'); open('link/new', 'w')",
        "os.symlink(a[0] + '/id_ed25519', 'link'); open('link', 'a')",
        "os.link(a[0] + '/id_ed25519', 'linked')",
        "open('own', 'w'); os.link('own', a[0] + '/new')",
        "open('own', 'w'); os.rename('own', a[0] + '/new')",
        "os.rename(a[0] + '/id_ed25519', 'stolen')",
        "open('/proc/self/root' + a[0] + '/new', 'w')",
        "open('/proc/self/cwd/../outside/new', 'w')",
        "os.open(a[0], os.O_TMPFILE | os.O_RDWR)",
        "os.chdir(a[0] + '/..'); open('outside/new', 'w')",
        "os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(a[0], os.O_PATH))",
        "os.mknod(a[0] + '/new')",
        "os.mknod('device', 0o600 | 0o020000, os.makedev(1, 1))",
    ],
)
def test_nothing_outside_can_be_written(jobs: ConfinedJobs, attack: str) -> None:
    before = sorted(jobs.outside.iterdir())
    confinement = jobs.confinement(read=["/proc"])
    assert jobs.error_of(attack, jobs.outside, confinement=confinement) in (
        *("EACCES", "EROFS", "EXDEV", "EPERM"),
    )
    assert sorted(jobs.outside.iterdir()) == before
    assert jobs.secret.read_text() == SECRET


def test_a_file_without_a_name_cannot_be_linked_outside(jobs: ConfinedJobs) -> None:
    attack = (
        "fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600); "
        "os.link(f'/proc/self/fd/{fd}', a[0] + '/new', follow_symlinks=True)"
    )
    confinement = jobs.confinement(read=["/proc"])
    assert jobs.error_of(attack, jobs.outside, confinement=confinement) in (
        "EACCES",
        "EROFS",
        "EXDEV",
    )


def test_only_the_standard_streams_are_inherited(jobs: ConfinedJobs) -> None:
    jobs.run("true")
    confinement = jobs.confinement(read=["/proc"], tmp=["TMPDIR"])
    code = "import os; print(*sorted(map(int, os.listdir('/proc/self/fd'))))"
    # Descriptor 3 is the listed folder itself.
    assert jobs.python(code, confinement=confinement) == "0 1 2 3"


def test_a_program_in_a_writable_folder_is_not_executed(jobs: ConfinedJobs) -> None:
    copy = "import shutil; shutil.copy('/bin/true', 'copied')"
    jobs.python(copy)
    answer = jobs.run("./copied")
    assert answer.stderr.decode() == "Failed to spawn: ./copied: Permission denied"
    allowed = jobs.confinement(execute=[str(jobs.project / "copied")])
    assert jobs.run("./copied", confinement=allowed).header["success"]


def test_a_program_started_by_the_loader_is_still_confined(jobs: ConfinedJobs) -> None:
    loader = next(iter(Path("/lib64").glob("ld-linux*")), None) or next(
        iter(Path("/lib").glob("ld-linux*")), None
    )
    if loader is None:
        pytest.skip("no loader of glibc")
    jobs.python("import shutil; shutil.copy('/bin/cat', 'copied')")
    answer = jobs.run(str(loader), "./copied", str(jobs.secret))
    assert b"Permission denied" in answer.stderr
    assert SECRET.encode() not in answer.stdout


@pytest.mark.parametrize(
    "attack",
    [
        "os.chmod(a[0], 0o777)",
        "os.chmod(os.path.dirname(a[0]), 0o777)",
        "os.utime(a[0])",
        "os.setxattr(a[0], 'user.mark', b'x')",
        "os.chown(a[0], -1, os.getgid())",
    ],
)
def test_attributes_of_files_outside_cannot_be_changed(jobs: ConfinedJobs, attack: str) -> None:
    jobs.needs("attributes")
    before = jobs.secret.stat()
    assert jobs.error_of(attack, jobs.secret) == "EROFS"
    assert jobs.secret.stat() == before
    assert jobs.error_of("open('own', 'w'); os.chmod('own', 0o700); os.utime('own')") == "done"


def test_parts_of_a_writable_folder_can_be_read_only_or_hidden(jobs: ConfinedJobs) -> None:
    jobs.needs("read_only", "hidden")
    for name in ("project/.git", "project/.git/hooks", "project/private"):
        jobs.make_folder(name)
    jobs.make_file("project/.git/config", "[core]")
    jobs.make_file("project/.env", SECRET)
    jobs.make_file("project/private/key", SECRET)
    inside = jobs.project
    confinement = jobs.confinement(
        read_only=[str(inside / ".git/hooks"), str(inside / ".git/config")],
        hidden=[str(inside / ".env"), str(inside / "private")],
    )
    for attack, error in [
        ("open('.git/hooks/pre-commit', 'w')", "EROFS"),
        ("open('.git/config', 'a')", "EROFS"),
        ("os.unlink('.git/config')", "EBUSY"),
        ("open('.git/own', 'w'); os.rename('.git/own', '.git/config')", "EBUSY"),
        ("os.rename('.git/hooks', '.git/moved')", "EBUSY"),
        # Otherwise another folder could take its place.
        ("os.rename('.git', 'moved')", "EBUSY"),
        ("open('private/new', 'w')", "EROFS"),
        ("open('.git/index', 'w')", "done"),
    ]:
        assert jobs.error_of(attack, confinement=confinement) == error, attack
    code = "import os; print(repr(open('.env').read()), os.listdir('private'))"
    assert jobs.python(code, confinement=confinement) == "'' []"
    assert (inside / ".env").read_text() == SECRET


def test_a_read_only_link_cannot_be_replaced(jobs: ConfinedJobs) -> None:
    jobs.needs("read_only")
    jobs.make_folder("project/.git")
    jobs.make_folder("project/shared")
    jobs.make_file("project/shared/pre-commit", "#!/bin/sh")
    (jobs.project / ".git/hooks").symlink_to("../shared")
    names = [".git/hooks", "shared"]
    confinement = jobs.confinement(read_only=[str(jobs.project / name) for name in names])
    for attack, error in [
        ("os.unlink('.git/hooks')", "EBUSY"),
        ("os.rename('.git/hooks', '.git/moved')", "EBUSY"),
        ("os.symlink('/', '.git/own'); os.rename('.git/own', '.git/hooks')", "EBUSY"),
        ("os.rename('.git', 'moved')", "EBUSY"),
        ("open('.git/hooks/pre-commit', 'a')", "EROFS"),
        ("open('.git/hooks/pre-commit')", "done"),
    ]:
        assert jobs.error_of(attack, confinement=confinement) == error, attack


def test_a_read_only_path_that_does_not_exist_is_missing(jobs: ConfinedJobs) -> None:
    jobs.needs("read_only")
    absent = str(jobs.project / ".git")
    answer = jobs.run("true", confinement=jobs.confinement(read_only=[absent]))
    assert answer.stderr.decode().endswith(f"read_only ({absent} does not exist)")
    answer = jobs.run("true", confinement=jobs.confinement(read_only=[absent], require=[]))
    expected = {"part": "read_only", "reason": f"{absent} does not exist"}
    assert expected in answer.header["confinement"]["missing"]


def test_a_link_in_the_place_of_a_granted_folder_is_refused(jobs: ConfinedJobs) -> None:
    granted = jobs.make_folder("project/out")
    confinement = jobs.confinement(write=[str(granted)])
    assert jobs.run("touch", "out/file", confinement=confinement).header["success"]
    # One job replaces the folder, to widen what the next one may write.
    jobs.python(
        "import os, sys; os.rename('out', 'away'); os.symlink(sys.argv[1], 'out')", jobs.outside
    )
    answer = jobs.run("touch", "out/file", confinement=confinement)
    assert answer.stderr.decode() == (
        f"Failed to spawn: confinement.write {granted}: "
        "contains a symbolic link; give the real path"
    )
    assert not (jobs.outside / "file").exists()


def test_a_folder_that_was_created_again_can_be_used(jobs: ConfinedJobs) -> None:
    granted = jobs.make_folder("granted")
    confinement = jobs.confinement(write=[str(granted)])
    for _ in range(2):
        assert jobs.run("touch", str(granted / "file"), confinement=confinement).header["success"]
        (granted / "file").unlink()
        granted.rmdir()
        jobs.make_folder("granted")
    granted.rmdir()
    answer = jobs.run("true", confinement=confinement)
    assert answer.stderr.decode() == (
        f"Failed to spawn: confinement.write {granted}: No such file or directory"
    )


def test_each_job_has_its_own_folder_which_is_removed(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(tmp=["TMPDIR", "HOME"])
    code = """if True:
        import os, sys
        for name in ("TMPDIR", "HOME"):
            print(os.environ[name], os.listdir(os.environ[name]))
            open(os.path.join(os.environ[name], "file"), "w").write("x")
            os.mkdir(os.path.join(os.environ[name], "locked"), 0)
    """
    first = jobs.python(code, confinement=confinement).splitlines()
    second = jobs.python(code, confinement=confinement).splitlines()
    folders = [line.split(" ")[0] for line in (*first, *second)]
    assert len(set(folders)) == 4
    assert all(line.endswith(" []") for line in (*first, *second))
    assert not any(Path(folder).parent.exists() for folder in folders)


def test_a_job_cannot_see_the_private_folder_of_another(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(tmp=["TMPDIR"])
    ready = jobs.project / "ready"
    script = 'echo secret > "$TMPDIR/file"; echo "$TMPDIR" > new; mv new ready; read x < stop'
    os.mkfifo(jobs.project / "stop")
    os.chown(jobs.project / "stop", jobs.uid, -1)
    with jobs.another_client() as other:
        held = threading.Thread(
            target=lambda: other.exec(
                "sh", "-c", script, cwd=str(jobs.project), confinement=confinement
            )
        )
        held.start()
        while not ready.exists():
            assert held.is_alive()
        path = ready.read_text().strip()
        errors = [
            jobs.error_of(f"{attack}(a[0])", path, confinement=confinement)
            for attack in ("os.listdir", "os.rmdir")
        ]
        (jobs.project / "stop").write_text("\n")
        held.join()
    assert errors == ["EACCES", "EACCES"]


def test_a_job_cannot_spoil_the_private_folders_of_later_jobs(jobs: ConfinedJobs) -> None:
    confinement = jobs.confinement(tmp=["TMPDIR"])
    parent = "os.path.dirname(os.path.dirname(os.environ['TMPDIR']))"
    for mode in (0, 0o777):
        jobs.error_of(f"os.chmod({parent}, {mode})", confinement=confinement)
        code = f"import os; print(oct(os.stat({parent}).st_mode & 0o777))"
        assert jobs.python(code, confinement=confinement) == "0o700"


def test_an_untouched_private_folder_leaves_nothing_behind(jobs: ConfinedJobs) -> None:
    code = "import os; print(os.environ['TMPDIR'])"
    folder = jobs.python(code, confinement=jobs.confinement(tmp=["TMPDIR"]))
    jobs.client.close()
    assert not Path(folder).parent.exists()
