"""The system space: it is shipped signed, and one command signs it again."""

import subprocess
import sys
from pathlib import Path

import pytest
from rye.context import Context
from rye.errors import ItemFormatError
from rye.formats import format_of
from rye.items.reader import read_item
from rye.spaces.model import Space
from rye.trust.release import main, release, shipped_files
from rye.trust.store import TrustStore
from rye.trust.verify import verify_item
from trust_world import Key, TrustWorld

SHIPPED = Context.from_machine().system_space / ".ai"
FILES = {
    "formats.yaml": b"{}\n",
    "tools/rye/a.py": b"#!/usr/bin/env python3\n__executor_id__ = None\n",
    "tools/rye/lib/helper.js": b"export const x = 1;\n",
}


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    world = TrustWorld(tmp_path)
    for name, content in FILES.items():
        path = world.system / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return world


def untrusted(root: Path, user: Path) -> list[str]:
    """Return the refusals of shipped files after a fresh installation."""
    context = Context(project_path=user, user_space=user, system_space=root.parent, environ={})
    store = TrustStore(context, spaces=(Space(name="system", root=root, bundle="rye"),))
    refused = []
    for path in shipped_files(root):
        try:
            verify_item(read_item(path, root), format_of(path).comment, store, path.name)
        except Exception as error:  # noqa: BLE001 - every reason is listed, of whatever type
            refused.append(str(error))
    return refused


def test_every_file_of_the_shipped_system_space_verifies(tmp_path: Path) -> None:
    assert len(list(shipped_files(SHIPPED))) > 10
    assert untrusted(SHIPPED, tmp_path) == [], "sign it again: python -m rye.trust.release"


def test_the_shipped_system_space_trusts_one_release_key_only() -> None:
    assert len(list((SHIPPED / "trusted_keys").iterdir())) == 1


def test_a_release_signs_every_file(world: TrustWorld, tmp_path: Path) -> None:
    assert len(untrusted(world.system, tmp_path)) == len(FILES)
    done = release(world.system)
    assert untrusted(world.system, tmp_path) == []
    assert {item.path for item in done.signed} == {world.system / name for name in FILES}
    assert {item.fingerprint for item in done.signed} == {done.fingerprint}


def test_the_private_key_is_not_stored(world: TrustWorld, tmp_path: Path) -> None:
    release(world.system)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"PRIVATE" in path.read_bytes()]
    assert len(files) == len(FILES) + 1


def test_a_second_release_removes_the_first_key(world: TrustWorld, tmp_path: Path) -> None:
    first = release(world.system)
    kept = (world.system / "tools/rye/a.py").read_bytes()
    second = release(world.system)
    assert first.fingerprint != second.fingerprint
    keys = world.system / "trusted_keys"
    assert second.removed_keys == (keys / f"{first.fingerprint}.toml",)
    assert [path.stem for path in keys.iterdir()] == [second.fingerprint]
    (world.system / "tools/rye/a.py").write_bytes(kept)
    assert len(untrusted(world.system, tmp_path)) == 1


def test_a_change_after_the_release_is_noticed(world: TrustWorld, tmp_path: Path) -> None:
    release(world.system)
    path = world.system / "tools/rye/lib/helper.js"
    path.write_bytes(path.read_bytes() + b"x\n")
    assert len(untrusted(world.system, tmp_path)) == 1


def test_an_interrupted_release_keeps_the_old_key(world: TrustWorld, tmp_path: Path) -> None:
    first = release(world.system)
    (world.system / "tools" / "zzz.json").write_text("{}")
    with pytest.raises(ItemFormatError):
        release(world.system)
    (world.system / "tools" / "zzz.json").unlink()
    assert (world.system / "trusted_keys" / f"{first.fingerprint}.toml").exists()
    assert untrusted(world.system, tmp_path) == []


def test_caches_and_keys_are_not_signed(world: TrustWorld) -> None:
    cache = world.system / "tools" / "rye" / "__pycache__"
    cache.mkdir()
    (cache / "a.pyc").write_bytes(b"\x00")
    world.put_key(world.system, Key.new())
    release(world.system)
    assert (cache / "a.pyc").read_bytes() == b"\x00"
    for path in (world.system / "trusted_keys").iterdir():
        assert b"rye:signed" not in path.read_bytes()


def test_the_command(world: TrustWorld, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rye.trust.release", str(world.system)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (key,) = (world.system / "trusted_keys").iterdir()
    assert done.stdout == f"signed 3 files with key {key.stem}\n"
    assert (done.returncode, done.stderr) == (0, "")
    assert untrusted(world.system, tmp_path) == []


def test_the_command_without_a_folder_to_sign(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path / 'nothing'} is not a folder; name the .ai folder to sign\n"
    )
    assert main(["--help"]) == 2
    assert capsys.readouterr().err == "usage: python -m rye.trust.release [FOLDER [OWNER]]\n"


def test_the_command_reports_a_file_that_cannot_be_signed(
    world: TrustWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    path = world.system / "tools" / "data.json"
    path.write_text("{}")
    assert main([str(world.system)]) == 1
    assert capsys.readouterr().err == (
        f"{path}: cannot have a signature line, because .json files have no comments; "
        "use a format that has comments\n"
    )
