"""The entries of the catalogue: what they contain, and which files become one."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalogue_project import HELLO, cache_file, ids, settle, write
from rye.catalogue.catalogue import Catalogue
from rye.errors import AmbiguousIdError, ItemNotFoundError, NoMetadataError
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_an_entry_has_everything_the_file_declares(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    (entry,) = Catalogue(project.context).entries()
    assert entry._asdict() == {
        "item_id": "team/hello",
        "space": "project",
        "bundle": "",
        "path": str(path),
        "version": "1.2.0",
        "tool_type": "shell",
        "executor_id": "rye/core/primitives/subprocess",
        "category": "greetings",
        "description": "says hello",
        "confined": False,
        "schema": {"type": "object", "properties": {"name": {"type": "string"}}},
        "annotations": {"read_only": True},
        "fault": "",
        "examples": [],
        "stdin": False,
        "needs_user": False,
    }


def test_entries_from_the_index_equal_entries_from_files(project: Project) -> None:
    write(project, "team/hello.yaml")
    write(project, "broken.yaml", "executor_id: [\n")
    settle(project)
    first = Catalogue(project.context).entries()
    assert Catalogue(project.context).entries() == first
    assert len(first) == 2


def test_helper_files_and_libraries_are_left_out(project: Project) -> None:
    write(project, "team/hello.yaml")
    write(project, "team/helper.py", "def greet() -> None: ...\n")
    write(project, "team/lib.yaml", HELLO.replace("shell", "library"))
    assert ids(project) == ["team/hello"]
    settle(project)
    assert ids(project) == ["team/hello"]
    assert ids(project) == ["team/hello"]


def test_runtimes_and_primitives_are_marked(project: Project) -> None:
    write(project, "team/hello.yaml")
    write(project, "team/runner.yaml", HELLO.replace("shell", "runtime"))
    summaries = Catalogue(project.context).summaries()
    assert [(each.item_id, each.is_tool) for each in summaries] == [
        ("team/hello", True),
        ("team/runner", False),
    ]


def test_the_project_takes_precedence_over_the_user(project: Project) -> None:
    write(project, "hello.yaml", HELLO.replace("says", "shouts"))
    write(project, "hello.yaml", space="user")
    (entry,) = Catalogue(project.context).entries()
    assert (entry.space, entry.description) == ("project", "shouts hello")


def test_a_file_that_cannot_be_parsed_results_in_an_entry_with_a_fault(project: Project) -> None:
    path = write(project, "broken.yaml", "version: 1.0\nexecutor_id: x\n")
    write(project, "team/hello.yaml")
    broken, hello = Catalogue(project.context).entries()
    assert broken.item_id == "broken"
    assert broken.fault == (
        f"{path}:1: expected text in quotes, got a number in 'version'; correct it and sign again"
    )
    assert not hello.fault


@pytest.mark.parametrize("choices", ["null", "5", "{a: 1}", "[1, null, {}]"])
def test_an_invalid_schema_does_not_hide_other_tools(project: Project, choices: str) -> None:
    odd = HELLO.replace("{type: string}", f"{{enum: {choices}}}")
    write(project, "odd.yaml", odd)
    write(project, "team/hello.yaml")
    assert ids(project) == ["odd", "team/hello"]


def test_two_files_with_one_id_are_reported_and_hide_nothing_else(project: Project) -> None:
    write(project, "team/hello.yaml")
    first = write(project, "twice.yaml")
    second = write(project, "twice.py", "")
    catalogue = Catalogue(project.context)
    assert [each.item_id for each in catalogue.summaries()] == ["team/hello"]
    assert catalogue.problems() == (f"'twice' is both {second} and {first}; remove or rename one",)
    settle(project)
    assert Catalogue(project.context).problems() == catalogue.problems()


def test_reading_creates_only_the_index(project: Project) -> None:
    write(project, "team/hello.yaml")
    before = set(project.path.rglob("*"))
    Catalogue(project.context).entries()
    assert set(project.path.rglob("*")) == before


class TestOneEntry:
    def test_a_short_id_is_enough(self, project: Project) -> None:
        write(project, "team/deep/hello.yaml")
        assert Catalogue(project.context).entry("hello").item_id == "team/deep/hello"

    def test_no_index_is_written(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        assert Catalogue(project.context).entry("team/hello").version == "1.2.0"
        assert not cache_file(project).path.exists()

    def test_an_unknown_id_is_refused_with_a_suggestion(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        with pytest.raises(ItemNotFoundError, match=r"there is no item 'team/helo'; did you mean"):
            Catalogue(project.context).entry("team/helo")

    def test_an_ambiguous_short_id_is_refused(self, project: Project) -> None:
        write(project, "a/hello.yaml")
        write(project, "b/hello.yaml")
        with pytest.raises(AmbiguousIdError, match="short id 'hello' is ambiguous: 'a/hello'"):
            Catalogue(project.context).entry("hello")

    def test_a_helper_file_is_not_an_item(self, project: Project) -> None:
        write(project, "helper.py", "x = 1\n")
        with pytest.raises(NoMetadataError, match="is not a tool: it has no metadata"):
            Catalogue(project.context).entry("helper")

    def test_a_library_is_returned(self, project: Project) -> None:
        write(project, "lib.yaml", HELLO.replace("shell", "library"))
        assert Catalogue(project.context).entry("lib").tool_type == "library"

    def test_a_primitive_without_a_file_is_returned(self, project: Project) -> None:
        entry = Catalogue(project.context).entry("subprocess")
        assert (entry.item_id, entry.path) == ("rye/core/primitives/subprocess", "")
        assert not entry.is_tool

    def test_a_fault_is_returned_and_not_raised(self, project: Project) -> None:
        path = write(project, "broken.py", "def (:\n")
        assert Catalogue(project.context).entry("broken").fault.startswith(f"{path}:1: ")
