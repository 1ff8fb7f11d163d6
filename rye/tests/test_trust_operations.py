"""Signing, trusting and verifying through the functions that the command line uses."""

import stat
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from lilux.primitives.signing import compute_key_fingerprint
from messages import exactly
from rye.errors import (
    ItemFormatError,
    ItemNotFoundError,
    KeyStoreError,
    UnsafePathError,
    UnsignedError,
)
from rye.trust.operations import (
    ItemReport,
    sign_item,
    sign_items,
    trust_add,
    trust_list,
    trust_remove,
    verify_all,
    verify_paths,
)
from rye.trust.signer import Signer
from rye.trust.verify import Standing
from trust_world import Key, TrustWorld

ALICE = Key.new()
BODY = b"__executor_id__ = None\n"


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    return TrustWorld(tmp_path)


def put(root: Path, name: str, content: bytes = BODY) -> Path:
    path = root / "tools" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def report(path: Path, world: TrustWorld) -> ItemReport:
    (found,) = verify_paths([path], world.context)
    return found


class TestSigning:
    def test_the_key_is_created_on_first_use_and_trusted(self, world: TrustWorld) -> None:
        path = put(world.project, "team/tool.py")
        signed = sign_item(path, world.context)
        assert signed.changed
        assert stat.S_IMODE((world.user / "keys" / "private_key.pem").stat().st_mode) == 0o600
        found = report(path, world)
        assert found.trusted
        assert found.verdict is not None
        assert found.verdict.content_hash == signed.content_hash
        assert found.verdict.fingerprint == signed.fingerprint

    def test_an_item_is_found_by_its_id(self, world: TrustWorld) -> None:
        path = put(world.project, "team/tool.py")
        assert sign_item("team/tool", world.context).path == path
        assert report(path, world).trusted

    def test_a_relative_path_is_relative_to_the_project(self, world: TrustWorld) -> None:
        path = put(world.project, "team/tool.py")
        assert sign_item(Path(".ai/tools/team/tool.py"), world.context).path == path

    @pytest.mark.parametrize(
        ("name", "comment"),
        [
            ("a.py", "#"),
            ("a.yaml", "#"),
            ("a.js", "//"),
            ("a.lua", "--"),
            ("a.sh", "#"),
            ("a", "#"),
        ],
    )
    def test_the_line_is_in_the_comment_syntax_of_the_file(
        self, name: str, comment: str, world: TrustWorld
    ) -> None:
        path = put(world.project, name)
        sign_item(path, world.context)
        assert path.read_text().startswith(f"{comment} rye:signed:")
        assert report(path, world).trusted

    def test_signing_twice_leaves_the_file_alone(self, world: TrustWorld) -> None:
        path = put(world.project, "tool.py")
        first = sign_item(path, world.context)
        before = (path.read_bytes(), path.stat().st_ino)
        second = sign_item(path, world.context)
        assert not second.changed
        assert second.content_hash == first.content_hash
        assert (path.read_bytes(), path.stat().st_ino) == before

    @pytest.mark.parametrize("changed", [b"print()\n", b"\xff\n"])
    def test_an_outdated_line_is_replaced(self, changed: bytes, world: TrustWorld) -> None:
        path = put(world.project, "tool.py")
        sign_item(path, world.context)
        path.write_bytes(path.read_bytes() + changed)
        assert sign_item(path, world.context).changed
        assert path.read_bytes().count(b"rye:signed:") == 1
        assert report(path, world).trusted

    def test_a_line_by_another_key_is_replaced(self, world: TrustWorld) -> None:
        path = put(world.project, "tool.py", ALICE.sign(BODY))
        assert sign_item(path, world.context).changed
        assert ALICE.fingerprint.encode() not in path.read_bytes()
        assert report(path, world).trusted

    def test_a_forged_line_in_the_users_name_is_replaced(self, world: TrustWorld) -> None:
        own = sign_item(put(world.project, "first.py"), world.context).fingerprint
        forged = ALICE.sign(BODY).replace(ALICE.fingerprint.encode(), own.encode())
        path = put(world.project, "tool.py", forged)
        assert report(path, world).verdict is not None
        assert sign_item(path, world.context).changed
        assert report(path, world).trusted

    @pytest.mark.parametrize("mode", [0o755, 0o600, 0o644])
    def test_the_mode_of_the_file_stays(self, mode: int, world: TrustWorld) -> None:
        path = put(world.project, "tool.sh", b"#!/bin/sh\necho hi\n")
        path.chmod(mode)
        sign_item(path, world.context)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert path.read_bytes().startswith(b"#!/bin/sh\n# rye:signed:")

    def test_nothing_else_is_left_in_the_folder(self, world: TrustWorld) -> None:
        path = put(world.project, "tool.py")
        sign_item(path, world.context)
        assert list(path.parent.iterdir()) == [path]

    def test_through_a_link_the_file_itself_is_signed(self, world: TrustWorld) -> None:
        path = put(world.project, "tool.py")
        link = path.with_name("link.py")
        link.symlink_to(path)
        sign_item(link, world.context)
        assert link.is_symlink()
        assert report(path, world).trusted

    def test_a_link_out_of_the_space_is_refused(self, world: TrustWorld, tmp_path: Path) -> None:
        outside = tmp_path / "outside.py"
        outside.write_bytes(BODY)
        (world.project / "tools" / "tool.py").symlink_to(outside)
        with pytest.raises(UnsafePathError):
            sign_item(world.project / "tools" / "tool.py", world.context)
        assert outside.read_bytes() == BODY

    def test_a_file_outside_of_the_spaces_can_be_signed(
        self, world: TrustWorld, tmp_path: Path
    ) -> None:
        path = tmp_path / "draft.py"
        path.write_bytes(BODY)
        sign_item(path, world.context)
        assert report(path, world).trusted
        assert report(path, world).item_id == str(path)

    @pytest.mark.parametrize("name", ["data.json", "page.html", "notes.md"])
    def test_a_format_without_comments_is_refused(self, name: str, world: TrustWorld) -> None:
        path = put(world.project, name)
        message = (
            f"{path}: cannot have a signature line, because {path.suffix} files have no comments; "
            "use a format that has comments"
        )
        with pytest.raises(ItemFormatError, match=exactly(message)):
            sign_item(path, world.context)
        assert path.read_bytes() == BODY

    def test_a_huge_file_is_refused(self, world: TrustWorld) -> None:
        path = put(world.project, "tool.py")
        with path.open("r+b") as stream:
            stream.truncate(1 << 40)
        message = f"{path}: is larger than 1048576 bytes; move large data into another file"
        with pytest.raises(ItemFormatError, match=exactly(message)):
            sign_item(path, world.context)

    def test_a_missing_file(self, world: TrustWorld) -> None:
        path = world.project / "tools" / "nothing.py"
        message = f"{path}: no such file; restore it, or search for it again"
        with pytest.raises(ItemNotFoundError, match=exactly(message)):
            sign_item(path, world.context)

    def test_a_primitive_without_a_file(self, world: TrustWorld) -> None:
        message = (
            "rye/core/primitives/subprocess is a primitive without a file; "
            "name an item that has one"
        )
        with pytest.raises(ItemNotFoundError, match=exactly(message)):
            sign_item("subprocess", world.context)

    def test_a_private_key_that_others_can_read_is_not_used(self, world: TrustWorld) -> None:
        path = put(world.project, "tool.py")
        sign_item(put(world.project, "first.py"), world.context)
        key = world.user / "keys" / "private_key.pem"
        key.chmod(0o644)
        message = (
            f"cannot use your key: private key {key} is accessible to other users (mode 0644); "
            f"run: chmod 600 {key}"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            sign_item(path, world.context)
        assert path.read_bytes() == BODY

    def test_nothing_is_signed_if_an_id_is_not_found(self, world: TrustWorld) -> None:
        path = put(world.project, "team/tool.py")
        with pytest.raises(ItemNotFoundError):
            sign_items(["team/tool", "team/nothing"], world.context)
        assert path.read_bytes() == BODY

    def test_concurrent_first_uses_create_one_key(self, world: TrustWorld) -> None:
        paths = [put(world.project, f"tool{number}.py") for number in range(8)]
        threads = [threading.Thread(target=sign_item, args=(path, world.context)) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(found.trusted for found in verify_paths(paths, world.context))


class TestTrusting:
    def test_a_key_file_of_another_user(self, world: TrustWorld, tmp_path: Path) -> None:
        item = put(world.project, "tool.py", ALICE.sign(BODY))
        assert not report(item, world).trusted
        pem = tmp_path / "alice.pem"
        pem.write_bytes(ALICE.public)
        entry = trust_add(pem, world.context, owner="Alice")
        assert (entry.fingerprint, entry.owner, entry.trusted) == (ALICE.fingerprint, "Alice", True)
        assert report(item, world).trusted

    def test_line_endings_do_not_make_another_key(self, world: TrustWorld, tmp_path: Path) -> None:
        pem = tmp_path / "alice.pem"
        pem.write_bytes(b"\r\n" + ALICE.public.rstrip().replace(b"\n", b"\r\n"))
        assert trust_add(pem, world.context).fingerprint == ALICE.fingerprint

    def test_the_entry_of_another_store(self, world: TrustWorld) -> None:
        path = world.put_key(world.project, ALICE, owner="alice@example.org")
        entry = trust_add(path, world.context)
        assert (entry.space, entry.owner) == ("user", "alice@example.org")

    def test_a_fingerprint_approves_a_key_that_the_project_lists(self, world: TrustWorld) -> None:
        item = put(world.project, "tool.py", ALICE.sign(BODY))
        world.put_key(world.project, ALICE)
        found = report(item, world)
        assert found.verdict is not None
        assert found.verdict.standing is Standing.UNTRUSTED
        assert str(found.error).endswith(f"rye trust add {ALICE.fingerprint}")
        assert trust_add(ALICE.fingerprint, world.context).trusted
        assert report(item, world).trusted

    def test_a_key_that_is_already_trusted_is_left_alone(self, world: TrustWorld) -> None:
        world.put_key(world.user, ALICE)
        assert trust_add(ALICE.fingerprint, world.context).space == "user"
        assert not (world.user / "approved_keys").exists()

    def test_a_private_key_is_refused(self, world: TrustWorld, tmp_path: Path) -> None:
        pem = tmp_path / "private_key.pem"
        pem.write_bytes(ALICE.private)
        message = (
            "cannot trust this key: public_key is not the PEM of an Ed25519 public key; "
            "pass the public_key.pem of its owner, and a plain name"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            trust_add(pem, world.context)

    def test_a_key_for_which_anyone_can_sign_is_refused(
        self, world: TrustWorld, tmp_path: Path
    ) -> None:
        identity = Ed25519PublicKey.from_public_bytes(b"\1" + bytes(31))
        key = identity.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        pem = tmp_path / "public_key.pem"
        pem.write_bytes(key)
        listed = world.put_key(world.project, Key(private=b"", public=key))
        for source, path in ((pem, pem), (compute_key_fingerprint(key), listed)):
            message = (
                f"{path} is an Ed25519 key of small order, for which anyone can sign; "
                "ask its owner for another key"
            )
            with pytest.raises(KeyStoreError, match=exactly(message)):
                trust_add(source, world.context)

    def test_a_missing_key_file(self, world: TrustWorld, tmp_path: Path) -> None:
        pem = tmp_path / "nothing.pem"
        message = (
            f"cannot trust this key: cannot read {pem}: No such file or directory; make it readable"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            trust_add(pem, world.context)

    def test_a_key_file_with_the_wrong_name(self, world: TrustWorld) -> None:
        path = world.put_key(world.project, ALICE, name="0" * 16)
        message = (
            f"cannot trust this key: {path}: contains key {ALICE.fingerprint}, which does "
            "not match its name; pass the public_key.pem of its owner"
        )
        with pytest.raises(KeyStoreError, match=exactly(message)):
            trust_add(path, world.context)

    def test_keys_can_be_listed_and_removed(self, world: TrustWorld) -> None:
        item = put(world.project, "tool.py", ALICE.sign(BODY))
        world.put_key(world.project, ALICE)
        trust_add(ALICE.fingerprint, world.context)
        sign_item(put(world.project, "own.py"), world.context)
        assert [(entry.space, entry.own) for entry in trust_list(world.context)] == [
            ("user", True),
            ("project", False),
        ]
        trust_remove(ALICE.fingerprint, world.context)
        assert not report(item, world).trusted


class TestVerifying:
    def test_everything_in_all_spaces(self, world: TrustWorld) -> None:
        world.put_key(world.system, ALICE)
        put(world.system, "rye/a.py", ALICE.sign(BODY))
        put(world.user, "team/b.py")
        put(world.project, "team/b.py", ALICE.sign(BODY))
        put(world.project, "team/c.js", ALICE.sign(BODY, "//") + b"changed\n")
        found = {
            (each.path.relative_to(world.context.project_path.parent).parts[0], each.item_id): (
                each.verdict.standing if each.verdict else None
            )
            for each in verify_all(world.context)
        }
        assert found == {
            ("system", "rye/a"): Standing.TRUSTED,
            ("user", "team/b"): Standing.UNSIGNED,
            ("project", "team/b"): Standing.UNTRUSTED,
            ("project", "team/c"): Standing.CHANGED,
        }

    def test_one_space(self, world: TrustWorld) -> None:
        put(world.system, "rye/a.py")
        put(world.project, "team/b.py")
        assert [each.item_id for each in verify_all(world.context, world.system_space)] == ["rye/a"]

    def test_a_file_that_cannot_be_read_is_reported(self, world: TrustWorld) -> None:
        path = put(world.project, "tool.py")
        path.unlink()
        path.mkdir()
        found = report(path, world)
        assert found.verdict is None
        assert isinstance(found.error, UnsafePathError)

    def test_the_error_is_the_one_that_a_run_would_raise(self, world: TrustWorld) -> None:
        path = put(world.project, "team/tool.py")
        found = report(path, world)
        assert isinstance(found.error, UnsignedError)
        assert str(found.error) == (
            f"team/tool is not signed: {path}; read the file, then sign it with: rye sign {path}"
        )


def test_operations_print_nothing(world: TrustWorld, capfd: pytest.CaptureFixture[str]) -> None:
    sign_item(put(world.project, "tool.py"), world.context)
    verify_all(world.context)
    trust_list(world.context)
    assert capfd.readouterr() == ("", "")


def test_private_keys_do_not_appear_in_reprs(world: TrustWorld) -> None:
    signer = Signer.of_user(world.user / "keys")
    assert "PRIVATE" not in repr(signer)
