"""Whatever a checkout or a caller brings: a value, or an error of the tree. Long runs: torture."""

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
MEND = "; correct it and sign again"


@pytest.mark.parametrize("fuzz", FUZZES, ids=lambda fuzz: fuzz.name)
def test_any_input_is_read_or_refused(fuzz: Fuzz) -> None:
    assert try_out(fuzz) >= fuzz.few


def test_a_run_counts_what_it_tried_and_tells_what_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = next(fuzz for fuzz in FUZZES if fuzz.name == "item ids")

    def broken(value: object) -> None:
        raise ValueError("this one is lost")

    bad = Fuzz(name="bad", inputs=good.inputs, opened=plain(broken))
    monkeypatch.setattr("torture.fuzzing.everything", lambda: (good, bad))
    kept, lost = run(seconds=0, number=3)
    assert isinstance(kept, Row)
    assert (kept.name, kept.failures) == ("item ids", ())
    assert kept.tried >= 200
    assert lost.failures == ("seed 3: ValueError: this one is lost",)


def test_every_promise_is_a_row_of_the_table_with_a_name_of_its_own(tmp_path: Path) -> None:
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
def test_found_a_number_in_base_60_of_any_length_is_refused_at_once(end: str) -> None:
    text = f"executor_id: null\nconfig:\n  a: {':'.join(['1'] * 400_000)}{end}\n"
    assert refusal_of("a.yaml", text) == (
        f"a.yaml:3: has a number of more than 100 characters; put it in quotes{MEND}"
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
    # Before, it held a text of 15,000 characters for each of the 15,000 entries.
    assert peak < 100_000_000


def test_found_a_place_in_a_message_is_cut() -> None:
    message = refusal_of("a.py", f"__executor_id__ = None\nCONFIG = {{'{'k' * 9000}': [x]}}\n")
    assert message == f"a.py:2: expected a literal in 'CONFIG.{'k' * 192}…'{MEND}"


def test_found_a_toml_key_of_thirty_thousand_parts_is_refused_at_once() -> None:
    block = f"# /// rye\n# executor_id = 'a'\n# config.{'a.' * 30_000}a = 1\n# ///\n"
    assert refusal_of("a.sh", block) == (
        f"a.sh:1: has a rye block that is not TOML (line 2 has more than 200 dots){MEND}"
    )


def test_found_an_entry_of_a_trust_store_with_such_a_key_is_refused_too() -> None:
    with pytest.raises(EntryFormatError, match=r"^is not valid TOML$"):
        parse_trusted_key(f"{'a.' * 8000}a = 1\n".encode(), "0" * 16)


def test_found_what_the_interpreter_remarks_on_a_file_is_not_said_when_it_is_only_read() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        metadata_of("a.py", "__executor_id__ = None\nx = '\\d' if 1is 1 else 0\n")
    assert said == []
