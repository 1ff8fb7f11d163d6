"""``python -m bench``: every benchmark is registered, and what it finds is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench.registry import BENCHMARKS, benchmark, title_of
from bench.report import results
from bench.table import Report, Row, Samples

ROOT = Path(__file__).parents[1]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_benchmark_is_registered_and_has_a_title() -> None:
    modules = {
        path.stem for path in (ROOT / "bench").glob("*.py") if "\ndef measure()" in path.read_text()
    }
    assert modules == set(BENCHMARKS)
    for name in BENCHMARKS:
        assert callable(benchmark(name))
        assert title_of(name).endswith(".")


def test_one_benchmark_replaces_only_its_part_of_the_results(tmp_path: Path) -> None:
    path = tmp_path / "bench" / "results.json"
    old = results.part_of(Report([Row("old", 1.0, 2.0)]), 1)
    results.write(path, {"calls": old, "schemas": old, "gone": old})
    done = bench("schemas", "--out", str(tmp_path))
    assert "validate_parameters, cached schema" in done.stdout, done.stderr
    found = json.loads(path.read_text())
    assert list(found) == ["calls", "schemas"]
    assert found["calls"] == old
    assert [row["what"] for row in found["schemas"]["rows"]] == [
        "validate_parameters, cached schema"
    ]
    assert set(found["schemas"]["machine"]) == {
        "processor",
        "cores",
        "memory_gib",
        "system",
        "python",
    }


def test_an_unknown_benchmark_is_refused_with_the_names() -> None:
    done = bench("schema")
    assert done.returncode == 2
    assert "unknown benchmark 'schema'; choose from: calls, " in done.stderr


def test_results_keep_four_digits_and_the_sizes_of_a_line() -> None:
    samples = {"x": Samples("ms", {"bar": 1.23456, "line": {10: 0.0123456}})}
    part = results.part_of(Report([Row("a ÷ b", 1.23456, 2.0)], samples, {"p": "why"}), 2.34)
    assert part["samples"] == {
        "x": {"unit": "ms", "values": {"bar": 1.235, "line": {"10": 0.01235}}}
    }
    assert (part["seconds"], part["missing"]) == (2.3, {"p": "why"})
    assert results.rows_of(part) == [Row("a ÷ b", 1.235, 2.0)]
