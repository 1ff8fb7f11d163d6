"""Verifying items: which signatures are trusted, and attacks on them."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lilux.primitives.signing import sign_hash
from rye.errors import (
    ChangedError,
    ForgedError,
    KeyStoreError,
    TrustError,
    UnsignedError,
    UntrustedKeyError,
)
from rye.items.element import ItemFile
from rye.trust.operations import trust_add
from rye.trust.signature import signed_digest, split_signature
from rye.trust.store import TrustStore
from rye.trust.verify import Standing, Verdict, judge, verify_item
from trust_world import TIMESTAMP, Key, TrustWorld

ALICE, MALLORY = Key.new(), Key.new()
BODY = b"__version__ = '1.0.0'\nprint('hi')\n"
SIGNED = ALICE.sign(BODY)
BODY_HASH = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def world(tmp_path: Path) -> TrustWorld:
    """The user trusts Alice."""
    world = TrustWorld(tmp_path)
    world.put_key(world.user, ALICE)
    return world


@pytest.fixture
def store(world: TrustWorld) -> TrustStore:
    return world.store()


def standing(content: bytes, world: TrustWorld, comment: str = "#") -> Standing:
    return judge(world.item(content), comment, world.store()).standing


def refused(
    error: type[TrustError], message: str, content: bytes, world: TrustWorld, name: str = "tool.py"
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$") as caught:
        verify_item(world.item(content, name), "#", world.store(), "team/tool")
    assert type(caught.value) is error


class TestTrusted:
    def test_an_item_signed_by_a_trusted_key_passes(self, world: TrustWorld) -> None:
        verdict = verify_item(world.item(SIGNED), "#", world.store(), "team/tool")
        assert verdict == Verdict(
            standing=Standing.TRUSTED,
            content_hash=BODY_HASH,
            fingerprint=ALICE.fingerprint,
            signed_at=TIMESTAMP,
        )
        assert verdict.trusted

    @pytest.mark.parametrize("prefix", [b"#!/bin/sh\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf#!/x\r\n"])
    def test_a_shebang_and_a_byte_order_mark_may_come_first(
        self, prefix: bytes, world: TrustWorld
    ) -> None:
        assert standing(ALICE.sign(prefix + BODY), world) is Standing.TRUSTED

    def test_windows_line_endings(self, world: TrustWorld) -> None:
        assert standing(ALICE.sign(BODY.replace(b"\n", b"\r\n")), world) is Standing.TRUSTED

    @pytest.mark.parametrize("comment", ["//", "--", ";", "%", '"', "REM"])
    def test_other_comment_signs(self, comment: str, world: TrustWorld) -> None:
        assert standing(ALICE.sign(BODY, comment), world, comment) is Standing.TRUSTED

    def test_the_same_bytes_are_trusted_in_another_place(self, world: TrustWorld) -> None:
        """Content is signed, not a path; the lockfile pins which content an id refers to."""
        store = world.store()
        assert judge(world.item(SIGNED, "other/copy.py"), "#", store).trusted
        assert judge(world.item(SIGNED), "#", store).trusted

    def test_a_megabyte(self, world: TrustWorld) -> None:
        assert standing(ALICE.sign(b"x" * 1024 * 1024), world) is Standing.TRUSTED

    def test_an_empty_item(self, world: TrustWorld) -> None:
        assert standing(ALICE.sign(b""), world) is Standing.TRUSTED
        assert standing(b"", world) is Standing.UNSIGNED


class TestUnsigned:
    def test_an_item_without_a_line(self, world: TrustWorld) -> None:
        path = world.item(b"").path
        message = (
            f"team/tool is not signed: {path}; read the file, then sign it with: rye sign {path}"
        )
        refused(UnsignedError, message, BODY, world)

    def test_the_command_in_the_message_is_quoted_for_a_shell(self, world: TrustWorld) -> None:
        path = world.item(b"", "my tool.py").path
        message = (
            f"team/tool is not signed: {path}; read the file, then sign it with: rye sign '{path}'"
        )
        refused(UnsignedError, message, BODY, world, "my tool.py")

    def test_a_malformed_line_is_reported(self, world: TrustWorld) -> None:
        path = world.item(b"").path
        message = (
            f"team/tool is not signed: {path} has a malformed signature line; "
            f"read the file, then sign it with: rye sign {path}"
        )
        refused(UnsignedError, message, SIGNED.replace(b"\n", b" \n", 1), world)

    @pytest.mark.parametrize(
        "hidden",
        [b"import os\n", b"\n", b" ", b"\x00", b"# -*- coding: utf-7 -*-\n", b"#!/x\nimport os\n"],
    )
    def test_nothing_can_be_hidden_before_the_line(self, hidden: bytes, world: TrustWorld) -> None:
        assert standing(hidden + SIGNED, world) is Standing.UNSIGNED

    def test_nothing_can_be_hidden_on_the_line(self, world: TrustWorld) -> None:
        """Python, like many languages, also ends a line at a carriage return."""
        line, _, rest = SIGNED.partition(b"\n")
        assert standing(line + b"\rimport os\n" + rest, world) is Standing.UNSIGNED

    def test_a_line_in_the_syntax_of_another_language_is_not_a_signature(
        self, world: TrustWorld
    ) -> None:
        assert standing(SIGNED, world, "//") is Standing.UNSIGNED


class TestChanged:
    def test_changed_content_is_refused(self, world: TrustWorld) -> None:
        path = world.item(b"").path
        message = (
            f"team/tool was changed after key {ALICE.fingerprint} signed it at 20261103T142530Z: "
            f"{path}; read what changed, then sign it again with: rye sign {path}"
        )
        refused(ChangedError, message, SIGNED + b"import os\n", world)

    def test_the_verdict_has_the_hash_of_the_present_content(
        self, world: TrustWorld, store: TrustStore
    ) -> None:
        verdict = judge(world.item(SIGNED + b"#"), "#", store)
        assert verdict.content_hash == hashlib.sha256(BODY + b"#").hexdigest()

    @pytest.mark.parametrize(
        "content",
        [
            b"#!/bin/evil\n" + SIGNED,
            b"\xef\xbb\xbf" + SIGNED,
            SIGNED[:-1],
            SIGNED.replace(b"\n", b"\r\n"),
            SIGNED.replace(b"\n", b"\n\n", 1),
            ALICE.sign(b"#!/bin/sh\n" + BODY).replace(b"/bin/sh", b"/bin/xx"),
        ],
        ids=["shebang", "mark", "end", "line endings", "blank line", "other shebang"],
    )
    def test_every_byte_outside_the_line_is_covered(
        self, content: bytes, world: TrustWorld
    ) -> None:
        assert standing(content, world) is Standing.CHANGED

    def test_a_second_line_in_front_does_not_replace_the_first(self, world: TrustWorld) -> None:
        line = ALICE.sign(b"print('harmless')\n").partition(b"\n")[0]
        assert standing(line + b"\n" + SIGNED, world) is Standing.CHANGED

    def test_a_second_line_after_the_first_is_content(self, world: TrustWorld) -> None:
        line = MALLORY.sign(BODY).partition(b"\n")[0] + b"\n"
        first, _, rest = SIGNED.partition(b"\n")
        assert standing(first + b"\n" + line + rest, world) is Standing.CHANGED
        assert standing(ALICE.sign(BODY), world) is Standing.TRUSTED

    def test_the_line_of_another_file_is_refused(self, world: TrustWorld) -> None:
        line = ALICE.sign(b"print('harmless')\n").partition(b"\n")[0]
        assert standing(line + b"\n" + BODY, world) is Standing.CHANGED


class TestForged:
    def test_a_signature_by_another_key_than_it_names(self, world: TrustWorld) -> None:
        path = world.item(b"").path
        content = MALLORY.sign(BODY).replace(
            MALLORY.fingerprint.encode(), ALICE.fingerprint.encode()
        )
        message = (
            f"team/tool has a signature that key {ALICE.fingerprint} did not make: {path}; "
            "get the file from its author again; or read it, and if you trust it, "
            f"sign it with: rye sign {path}"
        )
        refused(ForgedError, message, content, world)

    def test_the_signature_of_another_file_with_the_hash_of_this(self, world: TrustWorld) -> None:
        other = ALICE.sign(b"print('harmless')\n")
        other_hash = split_signature(other, "#").content_hash.encode()
        line = other.partition(b"\n")[0].replace(other_hash, BODY_HASH.encode())
        assert standing(line + b"\n" + BODY, world) is Standing.FORGED

    def test_another_timestamp_than_signed(self, world: TrustWorld) -> None:
        later = SIGNED.replace(TIMESTAMP.encode(), b"20991231T235959Z")
        assert standing(later, world) is Standing.FORGED

    def test_a_signature_of_the_bare_hash_is_refused(self, world: TrustWorld) -> None:
        """A signature without a timestamp, made for another purpose, is not valid for an item."""
        signature = split_signature(SIGNED, "#").line
        assert signature is not None
        bare = sign_hash(BODY_HASH, ALICE.private)
        assert sign_hash(signed_digest(TIMESTAMP, BODY_HASH), ALICE.private) == signature.signature
        forged = SIGNED.replace(signature.signature.encode(), bare.encode())
        assert standing(forged, world) is Standing.FORGED

    def test_a_forged_signature_of_a_key_that_the_project_lists(self, world: TrustWorld) -> None:
        """The user is not asked to approve a key because of a signature that it did not make."""
        carol = Key.new()
        world.put_key(world.project, carol)
        forged = MALLORY.sign(BODY).replace(
            MALLORY.fingerprint.encode(), carol.fingerprint.encode()
        )
        assert standing(forged, world) is Standing.FORGED


class TestUntrusted:
    def test_an_unknown_key_is_refused(self, world: TrustWorld) -> None:
        message = (
            f"team/tool is signed by key {MALLORY.fingerprint}, which you do not trust: "
            f"{world.item(b'').path}; if you know whose key it is, get the public key from its "
            "owner, and trust it with: rye trust add PUBLIC_KEY.pem"
        )
        refused(UntrustedKeyError, message, MALLORY.sign(BODY), world)

    def test_a_project_cannot_make_its_own_key_trusted(self, world: TrustWorld) -> None:
        world.put_key(world.project, MALLORY, owner="alice's other key")
        message = (
            f"team/tool is signed by key {MALLORY.fingerprint}, which this project lists "
            "as alice's other key's; you have not approved it: "
            f"{world.item(b'').path}; if you know that the key is theirs, approve it with: "
            f"rye trust add {MALLORY.fingerprint}"
        )
        refused(UntrustedKeyError, message, MALLORY.sign(BODY), world)

    def test_a_key_that_a_project_lists_is_trusted_once_approved(self, world: TrustWorld) -> None:
        world.put_key(world.project, MALLORY)
        world.store().approve(MALLORY.fingerprint)
        assert standing(MALLORY.sign(BODY), world) is Standing.TRUSTED

    def test_an_approval_inside_the_project_is_ignored(self, world: TrustWorld) -> None:
        """Approvals inside the project are ignored."""
        world.put_key(world.project, MALLORY)
        world.store().approve(MALLORY.fingerprint)
        (world.user / "approved_keys").rename(world.project / "approved_keys")
        assert standing(MALLORY.sign(BODY), world) is Standing.UNTRUSTED

    def test_a_project_cannot_use_a_copy_of_a_system_file(self, world: TrustWorld) -> None:
        """Otherwise the project could run it next to its own files, which it would import."""
        world.put_key(world.system, MALLORY)
        path = world.item(b"").path
        message = (
            f"team/tool is signed by key {MALLORY.fingerprint}, which is trusted for the "
            f"bundle rye in {world.system}, but not for this copy: {path}; "
            f"read the file, and if you trust it, sign it with: rye sign {path}"
        )
        refused(UntrustedKeyError, message, MALLORY.sign(BODY), world)

    def test_a_system_key_is_trusted_in_the_system_space(self, world: TrustWorld) -> None:
        world.put_key(world.system, MALLORY)
        file = ItemFile(path=world.system / "tools/tool.py", content=MALLORY.sign(BODY))
        assert judge(file, "#", world.store()).trusted

    def test_a_system_key_that_the_project_lists_too_can_be_approved(
        self, world: TrustWorld
    ) -> None:
        world.put_key(world.system, MALLORY)
        world.put_key(world.project, MALLORY)
        assert standing(MALLORY.sign(BODY), world) is Standing.UNTRUSTED
        assert trust_add(MALLORY.fingerprint, world.context).space == "project"
        assert standing(MALLORY.sign(BODY), world) is Standing.TRUSTED

    def test_an_unusable_entry_of_the_key_is_reported(self, world: TrustWorld) -> None:
        path = world.put_key(world.user, MALLORY)
        path.chmod(0o666)
        message = (
            f"team/tool is signed by key {MALLORY.fingerprint}, but {path} is writable by "
            f"other users (mode 0666); fix it with: chmod go-w {path}"
        )
        refused(KeyStoreError, message, MALLORY.sign(BODY), world)


class TestMemory:
    @pytest.mark.parametrize("first", ["system", "project"])
    def test_a_verdict_in_the_system_space_is_not_used_for_a_copy(
        self, world: TrustWorld, store: TrustStore, first: str
    ) -> None:
        world.put_key(world.system, MALLORY)
        content = MALLORY.sign(BODY)
        inside = ItemFile(path=world.system / "tools/tool.py", content=content)
        copy = world.item(content)
        for file in (inside, copy, inside) if first == "system" else (copy, inside, copy):
            assert judge(file, "#", store).trusted is (file is inside)

    def test_a_verdict_is_cached_by_content_not_by_path(
        self, world: TrustWorld, store: TrustStore
    ) -> None:
        first = judge(world.item(SIGNED), "#", store)
        assert judge(world.item(SIGNED, "other.py"), "#", store) is first
        assert not judge(world.item(SIGNED + b"x"), "#", store).trusted

    def test_a_verdict_is_cached_for_its_comment_sign_only(
        self, world: TrustWorld, store: TrustStore
    ) -> None:
        assert judge(world.item(SIGNED), "#", store).trusted
        assert judge(world.item(SIGNED), "//", store).standing is Standing.UNSIGNED

    def test_a_removed_key_is_noticed_by_the_next_stamp(
        self, world: TrustWorld, store: TrustStore
    ) -> None:
        assert judge(world.item(SIGNED), "#", store).trusted
        before = store.stamp()
        (world.user / "trusted_keys" / f"{ALICE.fingerprint}.toml").unlink()
        assert store.stamp() != before
        assert judge(world.item(SIGNED), "#", store).standing is Standing.UNTRUSTED

    def test_an_added_key_is_noticed_by_the_next_stamp(
        self, world: TrustWorld, store: TrustStore
    ) -> None:
        content = MALLORY.sign(BODY)
        assert not judge(world.item(content), "#", store).trusted
        world.put_key(world.user, MALLORY)
        store.stamp()
        assert judge(world.item(content), "#", store).trusted

    def test_verdicts_do_not_change_between_two_stamps(
        self, world: TrustWorld, store: TrustStore
    ) -> None:
        """The items of one call are judged by one state of the store."""
        assert judge(world.item(SIGNED), "#", store).trusted
        (world.user / "trusted_keys" / f"{ALICE.fingerprint}.toml").unlink()
        assert judge(world.item(SIGNED), "#", store).trusted

    def test_the_number_of_cached_verdicts_is_bounded(
        self, world: TrustWorld, store: TrustStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rye.trust.verify._MAX_VERDICTS", 10)
        for number in range(25):
            judge(world.item(b"%d" % number), "#", store)
        assert len(store.verdicts) <= 10


def test_judging_an_unsigned_item_loads_no_cryptographic_library() -> None:
    code = (
        "import sys, pathlib, tempfile; from rye.context import Context; "
        "from rye.trust.store import TrustStore; from rye.trust.verify import judge; "
        "from rye.items.element import ItemFile; here = pathlib.Path(tempfile.gettempdir()); "
        "store = TrustStore(Context(project_path=here, user_space=here, system_space=here, "
        "environ={}), spaces=()); judge(ItemFile(path=here, content=b'x'), '#', store); "
        "sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
