"""Which items a search finds, and in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rye.catalogue.catalogue import Catalogue
from rye.catalogue.words import words_in
from rye_project import Project

EXECUTOR = "rye/core/primitives/subprocess"


def tool(project: Project, item_id: str, description: str = "", **fields: Any) -> None:
    text = json.dumps({"executor_id": EXECUTOR, "description": description, **fields})
    project.tool(f"{item_id}.yaml", text, signed=False)


def parameters(**described: str) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": text} for name, text in described.items()}
    return {"type": "object", "properties": properties}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    project = Project(tmp_path_factory.mktemp("shop"))
    tool(project, "files/read", "Reads a text file", category="storage")
    tool(project, "files/write", "Writes a text file", category="storage")
    tool(project, "files/read_lines", "Gives some lines of it")
    tool(project, "mail/send", "Sends a message", config_schema=parameters(recipient="who gets it"))
    tool(
        project,
        "mail/fetch",
        "Gets messages that were not seen before",
        config_schema=parameters(mailbox="where to read from"),
    )
    tool(project, "images/thumbnail", "Makes a picture small")
    tool(project, "readme/spread", "Copies butter")
    tool(project, "core/runner", "Runs whatever reads a file", tool_type="runtime")
    tool(project, "core/lib", "Helps to read a file", tool_type="library")
    project.tool("broken.yaml", "executor_id: [", signed=False)
    return Catalogue(project.context)


def found(catalogue: Catalogue, words: str, **options: Any) -> list[str]:
    return [hit.entry.item_id for hit in catalogue.search(words, **options)]


def test_the_id_has_more_weight_than_the_description(shop: Catalogue) -> None:
    assert found(shop, "read")[:3] == ["files/read", "files/read_lines", "readme/spread"]


def test_a_whole_word_ranks_above_a_beginning_above_a_part(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for stem in ("bread", "readme", "reads_x", "reed"):
        tool(project, f"x/{stem}")
    order = found(Catalogue(project.context), "read")
    assert order == ["x/reads_x", "x/readme", "x/bread"]


def test_an_exact_id_ranks_first(shop: Catalogue) -> None:
    assert found(shop, "files/read_lines")[0] == "files/read_lines"
    assert found(shop, "files/read")[0] == "files/read"


def test_an_exact_id_has_more_weight_than_its_words(tmp_path: Path) -> None:
    project = Project(tmp_path)
    tool(project, "read/team")
    tool(project, "team/read")
    assert found(Catalogue(project.context), "team/read") == ["team/read", "read/team"]


def test_an_exact_name_has_more_weight_than_a_description(tmp_path: Path) -> None:
    project = Project(tmp_path)
    tool(project, "a/read_lines", "read everything and read it again", category="read")
    tool(project, "b/read")
    assert found(Catalogue(project.context), "read") == ["b/read", "a/read_lines"]


def test_items_with_all_words_rank_above_items_with_some(shop: Catalogue) -> None:
    order = found(shop, "read message")
    assert order[0] == "mail/fetch", "only this one has both, in its description and a parameter"
    assert "files/read" in order
    assert "mail/send" in order


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("storage write", "files/write"),
        ("recipient", "mail/send"),
        ("who gets", "mail/send"),
        ("picture", "images/thumbnail"),
        ("mailbox", "mail/fetch"),
    ],
    ids=["category", "parameter", "parameter description", "description", "parameter name"],
)
def test_every_field_is_searched(shop: Catalogue, words: str, first: str) -> None:
    assert found(shop, words)[0] == first


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("reading files", "files/read"),
        ("thumbnails", "images/thumbnail"),
        ("READ", "files/read"),
        ("readLines", "files/read_lines"),
        ("how do I read a file", "files/read"),
        ("thumbnial", "images/thumbnail"),
        ("recipeint", "mail/send"),
        ("buter", "readme/spread"),
    ],
)
def test_endings_case_fillers_and_typos_do_not_matter(
    shop: Catalogue, words: str, first: str
) -> None:
    assert found(shop, words)[0] == first


def test_a_word_found_only_in_hidden_items_is_corrected_to_one_of_a_tool(tmp_path: Path) -> None:
    project = Project(tmp_path)
    tool(project, "a/runner", tool_type="runtime")
    tool(project, "b/gunner")
    assert found(Catalogue(project.context), "runner") == ["b/gunner"]


def test_a_misspelt_word_has_less_weight(tmp_path: Path) -> None:
    project = Project(tmp_path)
    tool(project, "a/thumbnail", "of a photo")
    catalogue = Catalogue(project.context)
    exact, typo = catalogue.search("thumbnail"), catalogue.search("thumbnial")
    assert 0 < typo[0].score < exact[0].score


@pytest.mark.parametrize("words", ["", "   ", "!?", "zzzzzz", "421"])
def test_a_query_without_matches_finds_nothing(shop: Catalogue, words: str) -> None:
    assert found(shop, words) == []


def test_a_query_of_fillers_only_is_searched(shop: Catalogue) -> None:
    assert "files/read" in found(shop, "a")


def test_runtimes_are_found_only_with_everything(shop: Catalogue) -> None:
    assert "core/runner" not in found(shop, "runner")
    assert found(shop, "runner", everything=True) == ["core/runner"]
    assert "core/lib" not in found(shop, "read file", everything=True)


def test_a_file_that_cannot_be_read_is_found_by_its_id(shop: Catalogue) -> None:
    (hit,) = shop.search("broken")
    assert hit.entry.fault


def test_the_number_of_hits_is_limited(shop: Catalogue) -> None:
    assert found(shop, "file text read", limit=2) == found(shop, "file text read")[:2]
    assert found(shop, "file", limit=0) == []


def test_the_order_is_stable_and_by_id_among_equals(tmp_path: Path) -> None:
    project = Project(tmp_path)
    names = [f"x/tool_{letter}" for letter in "gcaebdf"]
    for name in names:
        tool(project, name, "the same text")
    orders = [found(Catalogue(project.context), "same text") for _ in range(3)]
    assert orders == [sorted(names)] * 3


def test_a_rare_word_has_more_weight_than_a_common_one(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for number in range(8):
        tool(project, f"x/tool_{number}", "common words")
    tool(project, "x/tool_8", "rare words")
    assert found(Catalogue(project.context), "common rare")[0] == "x/tool_8"


def test_fillers_do_not_outweigh_words(tmp_path: Path) -> None:
    project = Project(tmp_path)
    tool(project, "a/filler", "how to be in the and for it")
    tool(project, "b/read")
    assert found(Catalogue(project.context), "how to read in the") == ["b/read"]


def test_an_ending_does_not_change_the_score(shop: Catalogue) -> None:
    assert shop.search("pictures") == shop.search("picture")
    assert shop.search("butters") == shop.search("butter")


def test_nested_parameters_are_found(tmp_path: Path) -> None:
    project = Project(tmp_path)
    deep = {
        "type": "object",
        "properties": {
            "retry": {"type": "object", "properties": {"backoff": {"enum": ["exponential"]}}},
            "edits": {"type": "array", "items": {"properties": {"needle": {"type": "string"}}}},
        },
    }
    tool(project, "a/tool", config_schema=deep)
    catalogue = Catalogue(project.context)
    for word in ("backoff", "exponential", "needle"):
        assert found(catalogue, word) == ["a/tool"], word


def test_a_very_long_query_is_bounded(shop: Catalogue) -> None:
    assert found(shop, "read " * 100_000)[0] == "files/read"


def test_words_are_split_at_camel_case_and_punctuation() -> None:
    assert words_in("readFile from_HERE, v2.0 naïve") == [
        "read", "file", "from", "here", "v2", "0", "naïve",
    ]  # fmt: skip
