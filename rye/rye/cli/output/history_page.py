"""What ``rye history`` prints: a list of runs, one run, and statistics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rye.cli.output.printing import (
    echo,
    field_list,
    json_text,
    plain,
    print_table,
    short_list,
    style,
)
from rye.recording.run_ids import milliseconds_of

if TYPE_CHECKING:
    from rye.history.query import ToolStatistics

_BAR = 20
_PARTS = "▏▎▍▌▋▊▉█"


def print_runs(rows: Sequence[Mapping[str, Any]], most: int) -> None:
    """Print one line for each run; there may be one more than fits."""
    if not rows:
        echo("no runs")
        return
    lines = [
        (
            row["id"],
            local_time(row["id"]),
            _ending(row["outcome"], row["exit_code"], row["signal"]),
            _milliseconds(row["duration_ms"]),
            row["client"] or row["program"] or row["caller"],
            row["item"],
        )
        for row in rows[:most]
    ]
    print_table(lines, styles=[{"dim": True}, {}, {}, {}, {"dim": True}, {"bold": True}])
    if len(rows) > most:
        echo(f"the last {most} runs; see more with --limit")


def print_rows_as_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print a list of all rows, one on a line, without holding them in memory."""
    separator = "["
    for row in rows:
        echo(f"{separator}{json_text(row)}")
        separator = " ,"
    echo("[]" if separator == "[" else "]")


def record_page(record: Mapping[str, Any], kept: Sequence[str]) -> str:
    """Return one run as a page."""
    title = f"{style(plain(record['item']), bold=True)} {plain(record.get('version') or '')}"
    fields = [(name, plain(text)) for name, text in _fields(record, kept) if text]
    return f"{title.rstrip()}\n{field_list(fields)}"


def print_statistics(found: Sequence[ToolStatistics]) -> None:
    """Print a table with a bar for the number of calls."""
    if not found:
        echo("no runs")
        return
    most = max(one.calls for one in found)
    rows = [("tool", "calls", "failed", "p50", "p95", "")]
    rows += [
        (
            one.item,
            f"{one.calls:,}",
            f"{one.failed:,}",
            _milliseconds(one.p50_ms),
            _milliseconds(one.p95_ms),
            bar(one.calls / most),
        )
        for one in found
    ]
    print_table(rows)


def bar(share: float) -> str:
    """Return a bar for a share between 0 and 1; never empty."""
    eighths = max(1, round(share * _BAR * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_PARTS[rest - 1] if rest else "")


def local_time(run_id: str) -> str:
    """Return when a run began, in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds_of(run_id) // 1000))


def _fields(record: Mapping[str, Any], kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    get = record.get
    yield "run", record["id"]
    yield "began", local_time(record["id"])
    yield "ended", _ending(record["outcome"], get("exit"), get("signal"), get("error_type"))
    yield "reason", get("reason") or ""
    yield "by", _caller(record)
    yield "trace", get("trace_id") or ""
    yield "project", record["project"]
    yield "closure", get("closure") or ""
    yield "signed by", ", ".join(get("signers") or ())
    yield "interpreter", _interpreter(get("interpreter") or {})
    yield "parameters", _parameters(record["parameters"])
    yield "environment", " ".join(get("environment") or ())
    if "permissions" in record:
        yield "permissions", _permissions(record["permissions"])
        yield "enforced", short_list([f"{part}: {by}" for part, by in get("enforced", {}).items()])
        yield "not enforced", short_list([one["part"] for one in get("missing") or ()])
    yield (
        "durations",
        ", ".join([f"{name} {_milliseconds(taken)}" for name, taken in record["ms"].items()]),
    )
    for stream, described in (get("output") or {}).items():
        left_out = f", {described['left_out']} left out" if "left_out" in described else ""
        shown = f" (rye output {record['id']})" if stream in kept else ""
        yield stream, f"{described['bytes']} bytes{left_out}, {described['sha256']}{shown}"
    yield "survivors", " ".join(map(str, get("survivors") or ()))
    for process in (get("autopsy") or {}).get("processes", ()):
        yield "waited", f"{process['pid']} {process['command']}: {process['waits_for']}"
    yield "redacted", "yes" if get("redacted") else ""
    yield "imported", "yes; this account cannot say whether it is true" if get("imported") else ""


def _ending(outcome: str, code: int | None, signal: int | None, error: str | None = None) -> str:
    if outcome == "failed" and signal:
        return f"failed ({signal=})".replace("=", " ")
    if outcome == "failed" and code is not None:
        return f"failed ({code})"
    return f"{outcome} ({error})" if error else outcome


def _caller(record: Mapping[str, Any]) -> str:
    parts = [record["by"]]
    parts += [record[name] for name in ("client", "program") if name in record]
    if "token" in record:
        parts.append(f"with the token {record['token']}")
    return " ".join(parts)


def _interpreter(interpreter: Mapping[str, Any]) -> str:
    return " ".join([str(interpreter[name]) for name in ("path", "version") if name in interpreter])


def _parameters(parameters: Mapping[str, Any]) -> str:
    if "values" in parameters:
        return json_text(parameters["values"])
    return f"not kept, sha256 {parameters['sha256']}" if "sha256" in parameters else ""


def _permissions(permissions: Mapping[str, Any]) -> str:
    granted = [
        f"{name}: {', '.join(map(str, given))}" for name, given in permissions.items() if given
    ]
    return "; ".join(granted) or "nothing"


def _milliseconds(milliseconds: float) -> str:
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"
