"""Tools from a repository or an archive: shown, pinned, and never trusted by themselves."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from git_repository import real_git
from lilux.primitives.signing import generate_keypair, save_keypair
from rye.authoring.sources.fetch import MAX_FILE, fetch
from rye.authoring.sources.reference import Reference, reference_of
from rye.errors import RyeError
from rye_console import Console

TOOL = """# /// rye
# executor_id = "rye/core/runtimes/bash_runtime"
# description = "Say something"
# permissions = {}
# ///
echo one
"""


@pytest.fixture
def publisher(tmp_path: Path) -> Console:
    """Another person with a repository of signed tools, who shares a key in it."""
    save_keypair(*generate_keypair(), tmp_path / "publisher/user/.ai/keys")
    made = Console(tmp_path / "publisher")
    folder = made.path / ".ai/tools/say"
    folder.mkdir(parents=True)
    (folder / "it.sh").write_text(TOOL)
    made("sign", "say/it")
    made("trust", "share", "--owner", "Ada")
    real_git(made.path, "init", "-q", "-b", "main")
    commit(made, "first")
    return made


def commit(publisher: Console, message: str) -> str:
    real_git(publisher.path, "add", "-A")
    real_git(publisher.path, "commit", "-q", "-m", message)
    return real_git(publisher.path, "rev-parse", "HEAD").strip()


@pytest.fixture
def console(tmp_path: Path) -> Console:
    made = Console(tmp_path / "me")
    made("new", "own")  # which makes a key of my own
    return made


def add(console: Console, source: object, *more: str) -> str:
    done = console("add", str(source), "--as", "team", *more)
    assert done.code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("https://h/me/tools.git@v1#a/b", ("https://h/me/tools.git", "v1", "a/b", "b")),
        ("https://h/me/tools.git@feature/x", ("https://h/me/tools.git", "feature/x", "", "tools")),
        ("https://h/me/tools", ("https://h/me/tools", "", "", "tools")),
        ("git@h:me/tools@v1", ("git@h:me/tools", "v1", "", "tools")),
        ("git@h:me/tools", ("git@h:me/tools", "", "", "tools")),
        ("ssh://git@h/me/tools.git", ("ssh://git@h/me/tools.git", "", "", "tools")),
        ("https://h/x-1.0.tar.gz#a", ("https://h/x-1.0.tar.gz", "", "a", "a")),
    ],
)
def test_a_reference_names_url_revision_and_folder(
    tmp_path: Path, text: str, parts: tuple[str, str, str, str]
) -> None:
    found = reference_of(text, tmp_path)
    assert found is not None
    assert (found.url, found.ref, found.path, found.name) == parts
    assert str(found) == text


def test_a_url_as_package_installers_write_it_is_understood(tmp_path: Path) -> None:
    found = reference_of("git+https://h/me/tools@v1#a", tmp_path)
    assert str(found) == "https://h/me/tools@v1#a"


def test_a_file_is_not_a_source_and_a_path_cannot_leave_it(tmp_path: Path) -> None:
    assert reference_of("greet.py", tmp_path) is None
    with pytest.raises(RyeError, match="leads out of the source; name a folder inside of it"):
        reference_of("https://h/x#../../etc", tmp_path)


def test_a_directory_that_is_not_a_repository_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    with pytest.raises(RyeError, match="is a directory, and not a git repository; add its scripts"):
        reference_of("scripts", tmp_path)


def test_a_repository_is_shown_and_its_commit_is_pinned(
    console: Console, publisher: Console
) -> None:
    head = real_git(publisher.path, "rev-parse", "HEAD").strip()
    printed = add(console, publisher.path, "--yes")
    assert f"{publisher.path} at {head[:12]}\n" in printed
    assert "team/say/it  you do not trust " in printed
    assert "may do: " in printed
    assert "  rye trust add " in printed
    record = json.loads((console.user / ".ai/sources/team.json").read_text())
    assert record["revision"] == head


def test_an_added_tool_runs_only_after_its_key_is_trusted(
    console: Console, publisher: Console
) -> None:
    printed = add(console, publisher.path, "--yes")
    refused = console("run", "team/say/it", "--dry-run")
    assert (refused.code, "which you do not trust" in refused.stderr) == (4, True)
    key = printed.partition("rye trust add ")[2].splitlines()[0]
    console("trust", "add", key, "--yes")
    console("trust", "add", key)
    assert console("verify", "team/say/it").code == 0


def test_nothing_is_written_without_a_yes(console: Console, publisher: Console) -> None:
    done = console("add", str(publisher.path), "--as", "team")
    assert done.stderr == ("rye: nothing was changed; read what would be added, then pass --yes\n")
    assert not (console.user / ".ai/tools/team").exists()


def test_an_update_shows_what_changed_and_removes_what_is_gone(
    console: Console, publisher: Console
) -> None:
    add(console, publisher.path, "--yes")
    assert "team is up to date" in console("update").stdout
    folder = publisher.path / ".ai/tools/say"
    (folder / "it.sh").rename(folder / "that.sh")
    (folder / "more.sh").write_text(TOOL)
    head = commit(publisher, "second")
    assert console("update", "team").code == 1  # not without a yes
    printed = console("update", "team", "--yes").stdout
    assert "  new say/more.sh\n  new say/that.sh\n  removed say/it.sh\n" in printed
    assert "team/say/more  not signed" in printed
    assert "rye sign 'team/**'" in printed
    names = sorted(path.name for path in (console.user / ".ai/tools/team/say").iterdir())
    assert names == ["more.sh", "that.sh"]
    assert json.loads((console.user / ".ai/sources/team.json").read_text())["revision"] == head


def test_a_file_that_was_changed_here_is_not_replaced(console: Console, publisher: Console) -> None:
    add(console, publisher.path, "--yes")
    mine = console.user / ".ai/tools/team/say/it.sh"
    mine.write_text(mine.read_text() + "echo mine\n")
    (publisher.path / ".ai/tools/say/it.sh").write_text(TOOL + "echo two\n")
    commit(publisher, "second")
    done = console("update", "--yes")
    assert done.code == 1
    assert "it.sh was changed here since it was added; move it to a name of its own" in done.stderr


def test_a_tag_stays_where_it_is_and_an_unknown_one_is_named(
    console: Console, publisher: Console
) -> None:
    real_git(publisher.path, "tag", "v1")
    (publisher.path / ".ai/tools/say/more.sh").write_text(TOOL)
    commit(publisher, "second")
    add(console, f"{publisher.path}@v1", "--yes")
    assert "up to date" in console("update").stdout
    refused = console("add", f"{publisher.path}@v9", "--as", "other", "--yes")
    assert "has no branch, tag or commit 'v9'; check the URL" in refused.stderr


def test_a_source_is_removed_with_its_record(console: Console, publisher: Console) -> None:
    add(console, publisher.path, "--yes")
    assert console("rm", "team", "--yes").code == 0
    assert not (console.user / ".ai/tools/team").exists()
    assert not (console.user / ".ai/sources/team.json").exists()
    assert console("update", "team").stderr == (
        "rye: there is no source 'team'; add one with: rye add URL\n"
    )


def archive(path: Path, members: dict[str, bytes]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as zipped:
            for name, content in members.items():
                zipped.writestr(name, content)
        return path
    with tarfile.open(path, "w:gz") as packed:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("x/link.sh")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        packed.addfile(link)
    return path


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_an_archive_is_added_from_the_folder_that_is_named(
    console: Console, tmp_path: Path, suffix: str
) -> None:
    members = {"x-1.0/tools/a.sh": TOOL.encode(), "x-1.0/other/b.sh": TOOL.encode()}
    path = archive(tmp_path / f"x{suffix}", members)
    assert "team/a  not signed" in add(console, f"{path}#tools", "--yes")
    assert [one.name for one in (console.user / ".ai/tools/team").iterdir()] == ["a.sh"]


@pytest.mark.parametrize(
    ("path", "fix"), [("tools/it.sh", "write #tools"), ("it.sh", "leave out the part after #")]
)
def test_a_path_that_names_a_file_is_refused_with_the_folder(
    tmp_path: Path, path: str, fix: str
) -> None:
    made = archive(tmp_path / "x.tar.gz", {f"x-1.0/{path}": TOOL.encode()})
    with pytest.raises(RyeError) as caught:
        fetch(Reference(kind="archive", url=str(made), path=path))
    assert str(caught.value) == (
        f"{made}#{path} is a file, and a source is a folder of tools; {fix}"
    )


@pytest.mark.parametrize("name", ["../evil.sh", "/etc/evil.sh", "a/../../evil.sh", ".git/hooks/x"])
def test_a_member_that_leads_out_of_the_archive_is_left_out(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "x.tar.gz", {name: b"x", "ok.sh": b"y"})
    fetched = fetch(Reference(kind="archive", url=str(path)))
    assert dict(fetched.files) == {"ok.sh": b"y"}


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", {"a.sh": b"x" * (MAX_FILE + 1)})
    with pytest.raises(RyeError, match=r"a\.sh is larger than 1048576 bytes; name a folder"):
        fetch(Reference(kind="archive", url=str(path)))


def test_what_is_not_an_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"hello")
    with pytest.raises(RyeError, match="is not an archive"):
        fetch(Reference(kind="archive", url=str(tmp_path / "x.zip")))
