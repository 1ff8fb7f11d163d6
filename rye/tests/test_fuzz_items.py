"""Any input of a checkout or a caller is parsed or refused with a typed error.

``python -m torture`` tries more inputs.
"""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path

import pytest
from rye.errors import ItemFormatError
from rye.items.element import ItemFile, Metadata
from rye.items.metadata import parse_metadata
from rye.trust.key_format import EntryFormatError, parse_trusted_key

from torture import fuzzing_calls, fuzzing_items
from torture.fuzzing import Fuzz, Row, everything, plain, run, try_out
from torture.fuzzing_scenarios import SCENARIOS

FUZZES = [*fuzzing_items.scenarios(), *fuzzing_calls.scenarios()]
FIX = "; correct it and sign again"


@pytest.mark.parametrize("fuzz", FUZZES, ids=lambda fuzz: fuzz.name)
def test_any_input_is_read_or_refused(fuzz: Fuzz) -> None:
    assert try_out(fuzz) >= fuzz.few


def test_a_run_counts_inputs_and_reports_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = next(fuzz for fuzz in FUZZES if fuzz.name == "item ids")

    def broken(value: object) -> None:
        raise ValueError("broken on purpose")

    bad = Fuzz(name="bad", inputs=good.inputs, opened=plain(broken))
    monkeypatch.setattr("torture.fuzzing.everything", lambda: (good, bad))
    passed, failed = run(seconds=0, number=3)
    assert isinstance(passed, Row)
    assert (passed.name, passed.failures) == ("item ids", ())
    assert passed.tried >= 200
    assert failed.failures == ("seed 3: ValueError: broken on purpose",)


def test_every_property_is_a_scenario_with_a_unique_name(tmp_path: Path) -> None:
    names = {scenario.name for scenario in SCENARIOS}
    assert len(names) == len(SCENARIOS) == len(everything()) >= 15
    ids = next(scenario for scenario in SCENARIOS if scenario.name == "fuzz-item-ids")
    outcome = ids.run(300, tmp_path)
    assert outcome.tried >= 300
    assert outcome.failures == ()


def metadata_of(name: str, content: str) -> Metadata:
    return parse_metadata(ItemFile(path=Path(name), content=content.encode()))


def refusal_of(name: str, content: str) -> str:
    with pytest.raises(ItemFormatError) as raised:
        metadata_of(name, content)
    return str(raised.value)


@pytest.mark.parametrize("end", ["", ".5"])
def test_found_a_very_long_base_60_number_is_refused_quickly(end: str) -> None:
    text = f"executor_id: null\nconfig:\n  a: {':'.join(['1'] * 400_000)}{end}\n"
    assert refusal_of("a.yaml", text) == (
        f"a.yaml:3: has a number of more than 100 characters; put it in quotes{FIX}"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "__executor_id__ = None\nCONFIG = {{'{key}': [{wide}]}}\n"),
        ("a.yaml", "executor_id: null\nconfig:\n  ? {key}\n  : [{wide}]\n"),
    ],
)
def test_found_a_long_list_below_a_long_key_takes_little_memory(name: str, text: str) -> None:
    content = text.format(key="k" * 15_000, wide="1, " * 15_000)
    tracemalloc.start()
    try:
        assert len(next(iter(metadata_of(name, content).config.values()))) == 15_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The parser used to keep a 15,000-character path for each of the 15,000 entries.
    assert peak < 100_000_000


def test_found_a_long_key_path_in_a_message_is_truncated() -> None:
    message = refusal_of("a.py", f"__executor_id__ = None\nCONFIG = {{'{'k' * 9000}': [x]}}\n")
    assert message == f"a.py:2: expected a literal in 'CONFIG.{'k' * 192}…'{FIX}"


def test_found_a_toml_key_of_thirty_thousand_parts_is_refused_quickly() -> None:
    block = f"# /// rye\n# executor_id = 'a'\n# config.{'a.' * 30_000}a = 1\n# ///\n"
    assert refusal_of("a.sh", block) == (
        f"a.sh:1: has a rye block that is not TOML (line 2 has more than 200 dots){FIX}"
    )


def test_found_a_trusted_key_file_with_a_toml_key_of_many_parts_is_refused() -> None:
    with pytest.raises(EntryFormatError, match=r"^is not valid TOML$"):
        parse_trusted_key(f"{'a.' * 8000}a = 1\n".encode(), "0" * 16)


def test_found_syntax_warnings_of_a_parsed_file_are_not_shown() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        metadata_of("a.py", "__executor_id__ = None\nx = '\\d' if 1is 1 else 0\n")
    assert shown == []
