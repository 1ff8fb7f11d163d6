"""The file of all results. Running one benchmark replaces its part and leaves the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.registry import BENCHMARKS
from bench.report import machine
from bench.table import Report, Row, Samples

Results = dict[str, dict[str, Any]]


def read(path: Path) -> Results:
    """Return the results by the name of the benchmark; none if the file does not exist."""
    if not path.exists():
        return {}
    results: Results = json.loads(path.read_text())
    return results


def write(path: Path, results: Results) -> None:
    """Write the results in the order of the registry; a benchmark that is gone is left out."""
    ordered = {name: results[name] for name in BENCHMARKS if name in results}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


def part_of(report: Report, seconds: float) -> dict[str, Any]:
    """Return what the file says about one benchmark."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine.facts(),
        "seconds": round(seconds, 1),
        "rows": [asdict(row) | {"value": rounded(row.value)} for row in report.rows],
        "samples": {name: _samples(each) for name, each in report.samples.items()},
        "missing": dict(report.missing),
        "notes": list(report.notes),
        "peers": dict(report.peers),
    }


def rows_of(part: Mapping[str, Any]) -> list[Row]:
    """Return the rows of one benchmark."""
    return [Row(**row) for row in part["rows"]]


def rounded(value: float) -> float:
    """Return four significant digits: more of them are noise."""
    return float(f"{value:.4g}")


def _samples(samples: Samples) -> dict[str, Any]:
    return {
        "unit": samples.unit,
        "values": {
            name: {str(size): rounded(figure) for size, figure in value.items()}
            if isinstance(value, Mapping)
            else rounded(value)
            for name, value in samples.values.items()
        },
    }
