"""Short ids, and the ids that are reserved for primitives."""

from pathlib import Path

import pytest
from rye.errors import AmbiguousIdError, ItemNotFoundError
from rye.spaces.index import SpaceTree
from rye.spaces.resolver import Resolver
from rye_spaces import TemporarySpaces, has_same_answer

YAML_ITEM = "executor_id: subprocess\n"


@pytest.fixture
def spaces(tmp_path: Path) -> TemporarySpaces:
    return TemporarySpaces(tmp_path)


def test_a_short_id_is_the_one_file_of_that_stem(spaces: TemporarySpaces) -> None:
    path = spaces.write("system", "rye/core/runtimes/python_runtime.yaml", YAML_ITEM)
    found = spaces.resolver().resolve("python_runtime")
    assert found.item_id == "rye/core/runtimes/python_runtime"
    assert found.path == path


def test_two_files_of_a_stem_in_the_deciding_space_are_an_error_that_lists_both(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("user", "a/lint.py")
    spaces.write("user", "b/lint.sh", "")
    spaces.write("system", "c/lint.py")
    root = spaces.folder / "user" / ".ai"
    with pytest.raises(AmbiguousIdError) as caught:
        spaces.resolver().resolve("lint")
    assert str(caught.value) == (
        f"short id 'lint' is ambiguous: 'a/lint' ({root}) and 'b/lint' ({root}); use the full id"
    )


def test_the_highest_space_that_has_any_decides(spaces: TemporarySpaces) -> None:
    spaces.write("system", "a/lint.py")
    spaces.write("system", "b/lint.py")
    path = spaces.write("project", "c/lint.py")
    assert spaces.resolver().resolve("lint").path == path


def test_a_file_right_below_tools_has_its_stem_as_its_full_id(spaces: TemporarySpaces) -> None:
    path = spaces.write("user", "lint.py")
    spaces.write("user", "a/lint.py")
    found = spaces.resolver().resolve("lint")
    assert (found.item_id, found.path) == ("lint", path)


def test_a_short_id_from_a_lower_space_does_not_see_the_project(spaces: TemporarySpaces) -> None:
    spaces.write("project", "x/python_runtime.yaml", YAML_ITEM)
    ours = spaces.write("system", "rye/python_runtime.yaml", YAML_ITEM)
    resolver = spaces.resolver()
    found = resolver.resolve("python_runtime", from_space=resolver.spaces[1])
    assert found.path == ours


@pytest.mark.parametrize("name", ["project/deep/er/lint.py", "project/lint.yaml", "user/lint.odd"])
def test_a_file_of_that_stem_that_appears_in_a_higher_space_is_noticed(
    spaces: TemporarySpaces, name: str
) -> None:
    spaces.write("system", "a/lint.py")
    spaces.write("project", "deep/other.py")
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("lint")
    assert has_same_answer(resolver, found)
    assert resolver.resolve("lint") is found
    space, _, rest = name.partition("/")
    path = spaces.write(space, rest)
    assert not has_same_answer(resolver, found)
    assert resolver.resolve("lint").path == path


def test_a_file_that_is_removed_during_the_search_does_not_hide_a_lower_space(
    spaces: TemporarySpaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = spaces.write("system", "a/lint.py")
    above = spaces.write("project", "b/lint.py")
    ids_with_stem = SpaceTree.ids_with_stem

    def search_then_remove(tree: SpaceTree, stem: str) -> list[str]:
        found = ids_with_stem(tree, stem)
        above.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(SpaceTree, "ids_with_stem", search_then_remove)
    assert spaces.resolver().resolve("lint").path == below


def test_a_second_file_of_the_stem_that_appears_is_noticed(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("project", "a/lint.py")
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("lint")
    spaces.write("project", "b/lint.py")
    assert not has_same_answer(resolver, found)


def test_a_file_without_a_valid_id_does_not_affect_a_short_id(
    spaces: TemporarySpaces,
) -> None:
    path = spaces.write("project", "a/lint.py")
    spaces.write("project", "blank /lint.py")
    resolver = spaces.resolver()
    assert resolver.resolve("lint").path == path
    assert [each.item_id for each in resolver.iter_items()] == ["a/lint"]


def test_the_error_for_an_unknown_short_id_suggests_similar_ids(spaces: TemporarySpaces) -> None:
    spaces.write("system", "rye/core/runtimes/python_runtime.yaml", YAML_ITEM)
    with pytest.raises(ItemNotFoundError) as caught:
        spaces.resolver().resolve("pyton_runtime")
    assert str(caught.value) == (
        "there is no item 'pyton_runtime'; did you mean rye/core/runtimes/python_runtime?"
    )


def test_an_item_hidden_by_a_short_id_is_not_listed(spaces: TemporarySpaces) -> None:
    spaces.write("user", "lint.py")
    path = spaces.write("project", "a/lint.py")
    resolver = spaces.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/lint"]
    assert [str(error) for error in resolver.conflicts()] == [
        f"'lint' is the short id of {path}, which takes precedence; rename one"
    ]


# ── primitives ───────────────────────────────────────────────────────────────────────────────

PRIMITIVES = ["subprocess", "http_client"]


@pytest.mark.parametrize("stem", PRIMITIVES)
@pytest.mark.parametrize("short", [True, False])
def test_a_primitive_needs_no_file(spaces: TemporarySpaces, stem: str, short: bool) -> None:
    full = f"rye/core/primitives/{stem}"
    found = spaces.resolver().resolve(stem if short else full)
    assert (found.item_id, found.path, found.space.name) == (full, None, "system")
    assert has_same_answer(spaces.resolver(), found)


@pytest.mark.parametrize("stem", PRIMITIVES)
@pytest.mark.parametrize("space", ["project", "user"])
@pytest.mark.parametrize("folder", ["rye/core/primitives/", "rye/primitives/", ""])
def test_no_project_or_user_file_replaces_a_primitive(
    spaces: TemporarySpaces, space: str, stem: str, folder: str
) -> None:
    spaces.write(space, f"{folder}{stem}.py")
    resolver = spaces.resolver()
    for asked in (stem, f"rye/core/primitives/{stem}"):
        assert resolver.resolve(asked).path is None
    ours = spaces.write("system", f"rye/core/primitives/{stem}.yaml", "executor_id: null\n")
    for asked in (stem, f"rye/core/primitives/{stem}"):
        found = resolver.resolve(asked)
        assert (found.path, found.space.name) == (ours, "system")


def test_the_file_of_a_primitive_that_appears_is_noticed(spaces: TemporarySpaces) -> None:
    spaces.write("system", "rye/core/primitives/other.yaml", YAML_ITEM)
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("subprocess")
    spaces.write("system", "rye/core/primitives/subprocess.yaml", "executor_id: null\n")
    assert not has_same_answer(resolver, found)


def test_a_file_with_the_id_of_a_primitive_is_not_listed(spaces: TemporarySpaces) -> None:
    spaces.write("project", "rye/core/primitives/subprocess.py")
    spaces.write("project", "mine.py")
    assert [each.item_id for each in spaces.resolver().iter_items()] == ["mine"]


def test_the_reserved_ids_can_be_given(spaces: TemporarySpaces) -> None:
    spaces.write("project", "acme/queue.py")
    resolver = Resolver(spaces.context, primitives=["acme/queue"])
    assert resolver.resolve("acme/queue").path is None
    assert resolver.resolve("queue").item_id == "acme/queue"
