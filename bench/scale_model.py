"""How a batch grows: a model from measured parts, for clusters that we do not have.

The driver is one process. Every call passes through it once, so its time for a call limits the
rate of the whole batch, however many nodes there are. Everything else grows with the nodes, or with
the number of calls on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

NODES = (1, 10, 100, 1_000)
DURATIONS = {"10 ms": 0.01, "1 s": 1.0, "1 min": 60.0}
CALLS = 100_000_000
SIZES = (1_000_000, 10_000_000, 100_000_000)
CORES = 8
"""Of a node."""
SLOTS = 8 * CORES
"""Calls at once on a node, as the Ray backend chooses by default."""
INPUT_BYTES, DATA_BYTES = 60, 200
"""A line of the input, and the data of a result."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What was measured: CPU time in microseconds, and bytes."""

    check_us: float
    """Reading and checking one line, before anything runs."""
    driver_us: float
    """One call: read its line, write its start, schedule it, write its result."""
    record_us: float
    """The history of one call that ran on another machine."""
    message_us: float
    """One message of Ray to a node and back, on the driver's side."""
    carried_us: float
    """One call within such a message."""
    node_us: float
    """One call of a trivial tool, on one core of a node."""
    read_us: float
    """One finished call, when a batch is resumed."""
    result_bytes: float
    """A line of the results, without data."""
    lane_bytes: float
    """The driver's memory for a call that runs."""


PARTS = tuple(Parts.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What the model says about one batch."""

    rate: float
    """Calls a second."""
    limit: str
    """What limits it."""
    driver_busy: float
    """The share of the driver's time that is used if every message carries one call.

    When that is more than all of it, calls gather for a node while others are sent, and messages
    become larger, up to a call for every slot.
    """


def driver_rate(parts: Parts) -> float:
    """The calls a second that one driver can handle, with full messages."""
    return 1e6 / (call_us(parts) + parts.message_us / SLOTS)


def call_us(parts: Parts) -> float:
    """The driver's time for one call, without its message."""
    return parts.driver_us + parts.record_us + parts.carried_us


def forecast(parts: Parts, nodes: int, call_seconds: float) -> Forecast:
    """The rate of a batch whose calls wait, or compute elsewhere, for ``call_seconds``."""
    limits = {
        "the calls themselves": nodes * SLOTS / call_seconds,
        "the nodes' processors": nodes * CORES * 1e6 / parts.node_us,
        "the driver": driver_rate(parts),
    }
    limit = min(limits, key=lambda name: limits[name])
    rate = limits[limit]
    busy = min(1.0, rate * (call_us(parts) + parts.message_us) / 1e6)
    return Forecast(rate=rate, limit=limit, driver_busy=busy)


def duration(seconds: float) -> str:
    """Two digits of the largest unit that fits."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{_two(seconds / length)} {unit}"
    return f"{_two(seconds)} s"


def size(count: float) -> str:
    """Two digits of the largest unit that fits."""
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= length:
            return f"{_two(count / length)} {unit}"
    return f"{_two(count / 1e3)} kB"


def tables(parts: Parts) -> str:
    """The tables of docs/scale.md."""
    return "\n".join([*_parts(parts), "", *_rates(parts), "", *_sizes(parts)]) + "\n"


def parts_of(values: Mapping[str, float]) -> Parts:
    """The parts as the results have them."""
    return Parts(**{name: values[name] for name in PARTS})


def _parts(parts: Parts) -> Iterator[str]:
    yield "| part | measured |"
    yield "|---|---|"
    yield f"| read and check one line, before anything runs | {parts.check_us:.0f} µs |"
    yield f"| one call in the driver: journal, schedule, result | {parts.driver_us:.0f} µs |"
    yield f"| its record in the history | {parts.record_us:.0f} µs |"
    yield f"| one message of Ray to a node and back, in the driver | {parts.message_us:.0f} µs |"
    yield f"| one call within such a message | {parts.carried_us:.1f} µs |"
    yield f"| **the calls a second that one driver can handle** | **{_two(driver_rate(parts))}** |"
    yield f"| one call of a trivial tool, on one core of a node | {parts.node_us:.0f} µs |"
    yield f"| one finished call, when a batch is resumed | {parts.read_us:.1f} µs |"
    yield f"| one line of the results, without data | {parts.result_bytes:.0f} bytes |"
    yield f"| memory of the driver for each call that runs | {_two(parts.lane_bytes / 1e3)} kB |"


def _rates(parts: Parts) -> Iterator[str]:
    many = f"{CALLS // 1_000_000} million calls"
    yield f"| a call takes | nodes | calls a second | {many} | limited by | driver busy, at most |"
    yield "|---|---|---|---|---|---|"
    for name, seconds in DURATIONS.items():
        for nodes in NODES:
            found = forecast(parts, nodes, seconds)
            cells = (
                name,
                f"{nodes:,}",
                _two(found.rate),
                duration(CALLS / found.rate),
                found.limit,
                f"{_two(found.driver_busy * 100)}%",
            )
            yield f"| {' | '.join(cells)} |"


def _sizes(parts: Parts) -> Iterator[str]:
    yield "| calls | check them | resume them | bits in memory | disk |"
    yield "|---|---|---|---|---|"
    each = INPUT_BYTES + 8 + parts.result_bytes + DATA_BYTES
    for calls in SIZES:
        cells = (
            f"{calls:,}",
            duration(calls * parts.check_us / 1e6),
            duration(calls * parts.read_us / 1e6),
            size(calls / 4),
            size(calls * each),
        )
        yield f"| {' | '.join(cells)} |"


def _two(value: float) -> str:
    """Two significant digits, without an exponent."""
    return f"{float(f'{value:.2g}'):,g}" if value < 1e6 else f"{float(f'{value:.2g}'):,.0f}"
