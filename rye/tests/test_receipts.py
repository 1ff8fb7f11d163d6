"""Receipts: what a stranger can verify, and that no change goes unnoticed."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from histories import moved
from lilux.primitives.signing import load_keypair
from rye.context import Context
from rye.errors import ReceiptError
from rye.executor.run.blocking import BlockingExecutor
from rye.history.envelope import opened as open_envelope
from rye.history.receipts import issue_all, log_lines, receipt_of, user_signer
from rye.history.store import opened
from rye.history.verification import Keys, verify_log, verify_receipt
from rye.recording.record import Caller
from rye.recording.retention import apply_retention
from rye.recording.settings import Retention
from rye.trust.operations import trust_add
from rye.trust.rotation import revoke_key
from rye.trust.signer import Signer
from rye_command import InProcessRye
from rye_project import Project, says


class Receipts:
    """A project with five runs, their log, and an account that has only public material."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root / "ada")
        self.tool = says(self.project, "echo out", permissions={"read": ["{project_path}"]})
        with BlockingExecutor(self.project.context) as executor:
            for _ in range(4):
                result = executor.execute(self.tool, {"word": "hidden"}, caller=Caller(kind="mcp"))
            executor.execute("tools/missing")
        self.closure = result.metadata["closure"]
        context = self.project.context
        with opened(context) as history:
            issue_all(history, user_signer(context))
            self.lines = list(log_lines(history))
        self.public = load_keypair(self.project.user / ".ai" / "keys")[1]
        self.stranger = stranger(root / "stranger")


def stranger(root: Path) -> Context:
    """An account without a key: every test project has the same one."""
    (root / ".ai").mkdir(parents=True, mode=0o700)
    return Context.from_machine(root, root, root)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Receipts:
    return Receipts(tmp_path_factory.mktemp("receipts"))


def verify(made: Receipts, line: str, **options: Any) -> str:
    keys = Keys(made.stranger, made.public)
    return verify_receipt(line, keys, made.stranger, **options).remark


def test_a_receipt_is_an_in_toto_statement_about_the_run(made: Receipts) -> None:
    envelope = json.loads(made.lines[0])
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert [one["name"] for one in statement["subject"]] == ["stdout", "stderr"]
    predicate = statement["predicate"]
    assert predicate["item"] == made.tool
    assert predicate["closure"] == made.closure
    assert predicate["outcome"] == {"outcome": "ok", "exit": 0}
    assert predicate["permissions"]["read"] == ["{project_path}"]
    assert predicate["log"] == {"position": 1, "previous": None}
    assert len(predicate["described"]) == len(predicate["parameters_sha256"]) == 64


def test_a_receipt_has_no_values_and_no_paths_of_the_machine(made: Receipts) -> None:
    payload = base64.b64decode(json.loads(made.lines[0])["payload"]).decode()
    assert "hidden" not in payload
    assert str(made.project.path) not in payload
    assert str(made.project.user) not in payload


def test_another_account_verifies_it_with_only_public_material(
    made: Receipts, tmp_path: Path
) -> None:
    assert verify(made, made.lines[0]) == "this project does not pin the tool"
    account = stranger(tmp_path)
    with pytest.raises(ReceiptError, match="which you do not trust; get the key from its owner"):
        verify_receipt(made.lines[0], Keys(account), account)
    file = account.user_space / "ada.pem"
    file.write_bytes(made.public)
    trust_add(file, account, owner="ada@example.org")
    done = verify_receipt(made.lines[0], Keys(account), account)
    assert done.owner == "ada@example.org, trusted by you"
    revoke_key(done.receipt.fingerprint, account)
    with pytest.raises(ReceiptError, match=r"was revoked \(.*\); see "):
        verify_receipt(made.lines[0], Keys(account), account)


def test_every_single_bit_change_is_refused(made: Receipts) -> None:
    line = min(made.lines, key=len).encode()
    keys = Keys(made.stranger, made.public)
    verify_receipt(line.decode(), keys, made.stranger)
    accepted = []
    for at in range(len(line)):
        for bit in range(8):
            changed = bytes([*line[:at], line[at] ^ 1 << bit, *line[at + 1 :]])
            try:
                verify_receipt(changed.decode("ascii"), keys, made.stranger)
            except (ReceiptError, UnicodeDecodeError):
                continue
            accepted.append((at, bit))
    assert accepted == []


@pytest.mark.parametrize("extra", [" ", "\n", "{}"])
def test_nothing_may_be_added_to_a_receipt(made: Receipts, extra: str) -> None:
    with pytest.raises(ReceiptError):
        verify(made, made.lines[0] + extra)


def test_a_receipt_of_another_key_is_refused(made: Receipts) -> None:
    keys = Keys(made.stranger, Signer.fresh().public_key)
    with pytest.raises(ReceiptError, match="the receipt names the key"):
        verify_receipt(made.lines[0], keys, made.stranger)


def test_the_closure_is_compared_with_the_lock(made: Receipts) -> None:
    context = made.project.context
    keys = Keys(context)
    remark = verify_receipt(made.lines[0], keys, context, "lock").remark
    assert remark == "the one that this project pins"
    assert verify(made, made.lines[0], closure=made.closure)
    with pytest.raises(ReceiptError, match=r"is about closure [0-9a-f]{64}, not 00"):
        verify(made, made.lines[0], closure="00")
    with pytest.raises(ReceiptError, match="this project does not pin 'tools/says'"):
        verify(made, made.lines[0], closure="lock")


def test_a_lock_that_moved_on_is_a_remark(tmp_path: Path) -> None:
    made = Receipts(tmp_path)
    path = made.project.lockfile(made.tool)
    path.write_text(path.read_text().replace(made.closure, "ab" * 32))
    context = made.project.context
    done = verify_receipt(made.lines[0], Keys(context), context)
    assert done.remark == f"this project has pinned another one since, {'ab' * 32}"
    with pytest.raises(ReceiptError):
        verify_receipt(made.lines[0], Keys(context), context, "lock")


def test_a_run_that_was_refused_has_a_receipt(made: Receipts) -> None:
    assert verify(made, made.lines[4]) == "nothing ran"
    predicate = open_envelope(made.lines[4]).predicate
    assert predicate["outcome"] == {"outcome": "refused", "error_type": "ItemNotFoundError"}


# Logs


def faults(made: Receipts, lines: list[str]) -> list[tuple[int, str]]:
    report = verify_log(lines, Keys(made.stranger, made.public), made.stranger)
    return [(one.line, one.reason) for one in report.faults]


def test_a_whole_log_is_valid(made: Receipts) -> None:
    assert faults(made, made.lines) == []
    assert faults(made, made.lines[2:]) == []
    keys = Keys(made.stranger, made.public)
    assert verify_log(made.lines[2:], keys, made.stranger).first == 3


def test_a_log_may_be_asked_for_one_closure(made: Receipts) -> None:
    keys = Keys(made.stranger, made.public)
    assert verify_log(made.lines[:4], keys, made.stranger, made.closure).faults == ()
    (fault,) = verify_log(made.lines, keys, made.stranger, made.closure).faults
    assert fault.line == 5
    assert fault.reason == f"the receipt is about closure none, not {made.closure}"


def test_a_missing_entry_is_noticed(made: Receipts) -> None:
    one, _, three, four, five = made.lines
    assert faults(made, [one, three, four, five]) == [(2, "missing: entry 2")]
    assert faults(made, [one, five]) == [(2, "missing: entries 2 to 4")]


def test_reordered_entries_are_noticed(made: Receipts) -> None:
    one, two, three, four, _ = made.lines
    assert (3, "reordered: entry 2 comes after entry 3") in faults(made, [one, three, two, four])
    assert faults(made, [one, two, two]) == [(3, "entry 2 is there twice")]


def test_an_altered_entry_is_noticed(made: Receipts) -> None:
    one, two, three, *_ = made.lines
    altered = two.replace('"sig":"', '"sig":"A')
    found = faults(made, [one, altered, three])
    assert [line for line, _ in found] == [2]
    assert found[0][1].startswith("altered or not valid: ")


def test_an_entry_of_another_log_is_noticed(made: Receipts, tmp_path: Path) -> None:
    other = Receipts(tmp_path)  # with the same key
    assert faults(made, [made.lines[0], other.lines[1]]) == [(2, "entry 2 does not follow entry 1")]


def test_the_log_goes_on_after_old_runs_were_removed(tmp_path: Path) -> None:
    made = Receipts(tmp_path)
    context = made.project.context
    with opened(context) as history:
        apply_retention(history.connection, Retention(runs=1))
    made.project.run(made.tool)
    with opened(context) as history:
        issue_all(history, user_signer(context))
        lines = list(log_lines(history))
    assert faults(made, [*made.lines[:4], *lines]) == []
    assert faults(made, lines) == []


def test_an_imported_run_gets_no_receipt(tmp_path: Path) -> None:
    from rye.history.changes import exported, imported
    from rye.history.query import Wanted
    from rye.recording.retention import remove_all

    project = Project(tmp_path)
    project.run("tools/missing")
    context = project.context
    with opened(context) as history:
        lines = list(exported(history, Wanted()))
        remove_all(history.connection)
        imported(history, lines)
        run_id = json.loads(lines[0])["id"]
        with pytest.raises(ReceiptError, match=f"run {run_id} was imported; make its receipt"):
            receipt_of(history, run_id, user_signer(context))
        assert issue_all(history, user_signer(context)) == 0


# The command


def test_the_commands_print_verify_and_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path)
    tool = says(project, "echo out")
    project.run(tool)
    project.run(tool)
    moved(project)
    run = InProcessRye(project.path, project.user, monkeypatch, capfd)
    first = run("receipt", "last")
    assert first.code == 0, first.stderr
    assert run("receipt", "last") == first
    file = project.path / "receipt.json"
    file.write_text(first.stdout)
    done = run("receipt", "verify", "receipt.json")
    assert done.stdout.startswith("valid\n")
    for words in ("your own key", "the one that this project pins", "proves not"):
        assert words in " ".join(done.stdout.split())
    assert json.loads(run("receipt", "verify", "receipt.json", "--json").stdout)["valid"]
    wrote = run("receipt", "log", "--out", "log.jsonl")
    assert wrote.stdout == "wrote 2 receipts to log.jsonl\n"
    assert run("receipt", "verify", "log.jsonl").stdout.startswith("2 of 2 receipts valid, signed")
    lines = (project.path / "log.jsonl").read_text().splitlines()
    assert lines[0] == first.stdout.rstrip("\n")  # asked for first
    (project.path / "log.jsonl").write_text("\n".join(lines[::-1]))
    done = run("receipt", "verify", "log.jsonl")
    assert done.code == 4
    assert "line 2: reordered: entry 1 comes after entry 2" in done.stderr
    file.write_text(first.stdout.replace("payload", "payloaD", 1))
    done = run("receipt", "verify", "receipt.json")
    assert done.code == 4
    assert done.stderr == (
        "rye: this is not a receipt, or it was changed; "
        "use the line that `rye receipt` printed, as it is\n"
    )
    file.write_text(first.stdout)
    (project.path / "key.pem").write_bytes(load_keypair(project.user / ".ai" / "keys")[1])
    assert run("receipt", "verify", "receipt.json", "--key", "key.pem").code == 0
    (project.path / "key.pem").write_bytes(Signer.fresh().public_key)
    assert run("receipt", "verify", "receipt.json", "--key", "key.pem").code == 4
    (project.path / "key.pem").write_bytes(b"x")
    done = run("receipt", "verify", "receipt.json", "--key", "key.pem")
    assert done.stderr == (
        "rye: key.pem is not an Ed25519 public key; export it: rye trust share\n"
    )
