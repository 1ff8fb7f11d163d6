"""A cluster that is not what it should be. What needs no Ray is tried without it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from lilux.sha256 import sha256
from rye.batches.backends import WorkerLost
from rye.batches.backends.ray_records import WorkerRecords, checked_result
from rye.batches.backends.ray_shipment import Shipment, pack
from rye.batches.backends.ray_worker import RayWorker
from rye.batches.records import BatchResult, Call
from rye.recording.spool import SPOOL, history_folder
from rye_project import Project

CALL = Call(7, "seven", {})
RUN_ID = "01m7q7g9c7vcma4je9sy"
RESULT = BatchResult(7, "seven", "ok", None, None, 1, 1.0, RUN_ID)
DIGEST = "d" * 64
RECORD = {"id": RUN_ID, "item": "tools/t", "closure": DIGEST, "outcome": "ok"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project(tmp_path, shipped_system=True)
    project.command("tools/t", "/bin/echo", "hello")
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "operator"))
    return project


def shipped(project: Project) -> Shipment:
    async def freeze() -> Shipment:
        async with project.executor() as executor:
            return pack(await executor.freeze("tools/t"), project.context)

    return asyncio.run(freeze())


def opened(shipment: Shipment) -> Any:
    """What a worker says about a shipment."""

    async def body() -> Any:
        worker = RayWorker()
        try:
            return await worker.open(shipment, {}, None)
        finally:
            await worker.close()

    return asyncio.run(body())


def test_a_worker_comes_to_the_digest_of_the_driver(project: Project) -> None:
    shipment = shipped(project)
    assert opened(shipment) == shipment.closure


def test_a_blob_that_changed_on_its_way_is_refused(project: Project) -> None:
    shipment = shipped(project)
    name = shipment.files["project/tools/tools/t.yaml"][0]
    changed = shipment.blobs[name].replace(b"hello", b"other")
    tampered = shipment._replace(blobs={**shipment.blobs, name: changed})
    assert opened(tampered) == (
        "ClosureError",
        "a file of 'tools/t' changed on its way",
        "start the batch again",
    )


def test_a_file_with_a_matching_name_and_no_valid_signature_is_refused(project: Project) -> None:
    shipment = shipped(project)
    name, executable = shipment.files["project/tools/tools/t.yaml"]
    changed = shipment.blobs[name].replace(b"hello", b"other")
    renamed = sha256(changed).hexdigest()
    tampered = shipment._replace(
        files={**shipment.files, "project/tools/tools/t.yaml": (renamed, executable)},
        blobs={**shipment.blobs, renamed: changed},
    )
    kind, reason, _ = opened(tampered)
    assert kind == "ChangedError"
    assert "t.yaml" in reason


def test_another_tool_with_a_valid_signature_is_refused(project: Project) -> None:
    shipment = shipped(project)
    project.command("tools/t", "/bin/echo", "other")
    kind, reason, _ = opened(shipped(project)._replace(closure=shipment.closure))
    assert kind == "ClosureError"
    assert f"not {shipment.closure[:12]}" in reason


@pytest.mark.parametrize(
    "place",
    [
        "project/tools/../../../escaped",
        "project/tools/./a",
        "project/tools",
        "project/",
        "/etc/escaped",
        "system/tools/a.py",
        "user/config.yaml",
        "user/keys/public_key.pem",
        "user/trusted_keys/0123456789abcdef.toml",
    ],
)
def test_a_shipment_writes_only_into_its_spaces(project: Project, place: str) -> None:
    shipment = shipped(project)
    blob = shipment.files["project/tools/tools/t.yaml"]
    assert opened(shipment._replace(files={**shipment.files, place: blob})) == (
        "ClosureError",
        f"{place!r} is not a place for a file",
        "update rye",
    )


def test_a_key_that_the_operator_revoked_is_refused(project: Project, tmp_path: Path) -> None:
    shipment = shipped(project)
    (fingerprint,) = shipment.keys
    folder = tmp_path / "operator" / ".ai" / "revoked_keys"
    folder.mkdir(parents=True, mode=0o700)
    (folder / f"{fingerprint}.toml").write_text("damaged")
    kind, reason, _ = opened(shipment)
    assert kind == "UntrustedKeyError"
    assert reason.startswith(f"key {fingerprint} was revoked on ")


@pytest.mark.parametrize(
    "change",
    [
        {"line": 8},
        {"id": "eight"},
        {"attempt": 2},
        {"outcome": "skipped"},
        {"outcome": "good"},
        {"run_id": "01m7q7g9c7vcma4je9sz"},
    ],
    ids=str,
)
def test_a_worker_cannot_answer_for_another_call(change: dict[str, Any]) -> None:
    assert checked_result(tuple(RESULT), CALL, RUN_ID) == RESULT
    with pytest.raises(WorkerLost):
        checked_result(tuple(RESULT._replace(**change)), CALL, RUN_ID)


def test_a_result_of_another_shape_is_refused() -> None:
    with pytest.raises(WorkerLost):
        checked_result((7, "seven"), CALL, RUN_ID)


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({**RECORD, "id": "../../../../tmp/escaped"}).encode(),
        json.dumps({**RECORD, "item": "tools/other"}).encode(),
        json.dumps({**RECORD, "closure": "e" * 64}).encode(),
        b"[]",
        b"{",
    ],
)
def test_a_worker_cannot_write_another_run_into_the_history(project: Project, line: bytes) -> None:
    records = WorkerRecords(project.context, "tools/t", DIGEST)
    with pytest.raises(WorkerLost):
        records.keep(RESULT, line, "node")
    records.close()
    assert not Path(history_folder(project.user), SPOOL).exists()


def test_a_record_says_that_it_is_from_a_batch_of_this_project(project: Project) -> None:
    records = WorkerRecords(project.context, "tools/t", DIGEST)
    forged = {**RECORD, "project": "/elsewhere", "by": "cli", "worker": "another"}
    assert records.keep(RESULT, json.dumps(forged).encode(), "node") == RESULT
    records.close()
    found = json.loads(Path(history_folder(project.user), SPOOL).read_bytes())
    assert found == {
        **RECORD,
        "project": str(project.context.project_path),
        "by": "batch",
        "worker": "node",
    }
