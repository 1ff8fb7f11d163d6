"""The shape of a record that somebody else wrote, so that a page about it can be printed.

Fields that are not named here are kept as they are: a newer version may know them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from rye.errors import HistoryError
from rye.recording.run_ids import is_run_id

_Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})*$")]


class _Parameters(msgspec.Struct):
    sha256: str | None = None
    values: dict[str, Any] | None = None


class _Durations(msgspec.Struct):
    total: _Milliseconds


class _Stream(msgspec.Struct):
    bytes: _Integer
    sha256: str
    left_out: _Integer = 0
    text: str | None = None
    hex: _Hex | None = None


class _Missing(msgspec.Struct):
    part: str


class _Process(msgspec.Struct):
    pid: _Integer
    command: str
    waits_for: str


class _Autopsy(msgspec.Struct):
    processes: list[_Process] = []


class _Denial(msgspec.Struct):
    tried: str
    key: str
    target: str | None = None


class _Permissions(msgspec.Struct):
    read: list[str]
    write: list[str]
    net: list[str]
    env: list[str]
    run: list[str]
    limits: dict[str, _Integer]


class _Record(msgspec.Struct):
    id: str
    time: str
    by: str
    project: str
    item: str
    outcome: str
    ms: dict[str, _Milliseconds]
    parameters: _Parameters
    client: str | None = None
    token: str | None = None
    program: str | None = None
    trace_id: str | None = None
    version: str | None = None
    closure: str | None = None
    space: str | None = None
    error_type: str | None = None
    reason: str | None = None
    exit: _Integer | None = None
    signal: _Integer | None = None
    signers: list[str] = []
    environment: list[str] = []
    interpreter: dict[str, Any] = {}
    permissions: _Permissions | None = None
    enforced: dict[str, Any] = {}
    missing: list[_Missing] = []
    survivors: list[Any] = []
    output: dict[str, _Stream] = {}
    autopsy: _Autopsy | None = None
    denials: list[_Denial] = []
    replays: str | None = None
    imported: bool = False


def checked(record: Any) -> dict[str, Any]:
    """Return the record as it is. Raises :class:`HistoryError` for something that is not one."""
    if not isinstance(record, dict):
        raise HistoryError("not a record")
    if not is_run_id(str(record.get("id"))):
        raise HistoryError("not a record: the id is not one of a run")
    try:
        msgspec.convert(record, _Record)
        msgspec.convert(record["ms"], _Durations)
    except msgspec.ValidationError as error:
        raise HistoryError(f"not a record: {error}") from None
    return record
