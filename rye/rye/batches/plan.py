"""Starting, resuming and describing a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lilux.record import Record
from lilux.schemas.schema_validator import compile_once

from rye.batches.calls import Survey, bad_line, numbered, parse, survey
from rye.batches.folder import BatchFolder, Progress, is_set
from rye.batches.records import SKIPPED, UNKNOWN, BatchResult, Call, without_result
from rye.errors import BatchError, ParameterError

if TYPE_CHECKING:
    from rye.executor.run.prepare import VerifiedChain

IN_DOUBT = "the batch was interrupted; the call may or may not have run"


class BatchState(Record, frozen=True):
    """How far a batch has come."""

    total: int
    ended: int
    in_doubt: int
    """Started, without a result."""
    outcomes: Counter[str]


def create(
    folder: BatchFolder,
    lines: Iterable[bytes],
    verified: VerifiedChain,
    options: Mapping[str, Any],
    *,
    skip_bad: bool,
) -> Survey:
    """Check the calls and write the folder. Nothing has run when this returns or raises."""
    retries_of(options, verified)
    tool = verified.chain[0]
    schema = tool.metadata.config_schema
    validate = None if schema is None else compile_once(dict(schema)).validate

    def check(parameters: Mapping[str, Any]) -> list[str]:
        return [] if validate is None else list(validate(dict(parameters)).errors)

    folder.create()
    try:
        with folder.new_calls() as target:
            found = survey(lines, target, check, skip_bad=skip_bad)
            size = target.tell()
    except BatchError:
        raise  # another program has begun a batch in this folder
    except OSError as error:
        folder.discard()
        raise BatchError(
            f"cannot copy the calls to {folder.path}: {(error.strerror or str(error)).lower()}",
            hint="choose another --dir",
        ) from None
    except BaseException:
        folder.discard()
        raise
    folder.write_manifest(
        {
            "tool": tool.item_id,
            "tool_version": tool.version,
            "space": tool.space,
            "closure": verified.closure.digest,
            "calls": found.count,
            "bad": found.bad,
            "size": size,
            "options": dict(options),
        }
    )
    return found


def may_repeat(verified: VerifiedChain) -> bool:
    """True if the tool declares that running it again changes nothing."""
    annotations = verified.chain[0].metadata.annotations
    return bool(annotations.get("idempotent") or annotations.get("read_only"))


def retries_of(options: Mapping[str, Any], verified: VerifiedChain) -> int:
    """How often a failed call is tried again. Raises :class:`ParameterError` if it must not be."""
    retries = int(options.get("retry") or 0)
    if retries and not may_repeat(verified) and not options.get("retry_unsafe"):
        raise ParameterError(
            "invalid --retry",
            ["the tool does not declare that it may run twice (idempotent)"],
            hint="pass --retry-unsafe if it may",
        )
    return retries


def state_of(folder: BatchFolder) -> BatchState:
    """How far it has come."""
    total = int(folder.manifest()["calls"])
    found = folder.progress(total)
    finished = sum(map(int.bit_count, found.ended))
    doubt = sum((a & ~b).bit_count() for a, b in zip(found.started, found.ended, strict=True))
    return BatchState(total, finished, doubt, found.outcomes)


def remaining(
    folder: BatchFolder, before: Progress, *, rerun_unknown: bool
) -> Iterator[Call | BatchResult]:
    """The calls that still have to run, and the results of those that must not run again.

    Lines that cannot be used are skipped: they were reported when the batch was created.
    """
    for line, text in numbered(folder.calls):
        try:
            if is_set(before.ended, line):
                continue
            bad = bad_line(text, line)
            call = parse(text, line) if bad is None else bad[0]
        except (ValueError, IndexError):
            raise _changed(folder) from None
        if bad is not None:
            yield without_result(call, SKIPPED, f"the line cannot be used: {bad[1]}")
        elif is_set(before.started, line) and not rerun_unknown:
            yield without_result(call, UNKNOWN, IN_DOUBT)
        else:
            yield call


def check_unchanged(folder: BatchFolder, before: Progress, *, may_run_twice: bool) -> None:
    """Refuse to go on with files that a run of the batch cannot have left behind.

    Raises :class:`BatchError`.
    """
    size = folder.manifest().get("size")
    if size is not None and folder.calls.stat().st_size != size:
        raise _changed(folder)
    if not may_run_twice and not before.is_complete:
        raise BatchError(
            f"{folder.path / 'journal'} lacks calls that have a result; others may have run, too",
            hint="restore it; or, if calls may run twice, pass --rerun-unknown",
        )


def _changed(folder: BatchFolder) -> BatchError:
    return BatchError(
        f"{folder.calls} has changed since the batch was started",
        hint="restore it, or start another batch",
    )
