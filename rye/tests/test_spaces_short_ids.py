"""Short ids, and the ids of primitives that no file can take."""

from pathlib import Path

import pytest
from rye.errors import AmbiguousIdError, ItemNotFoundError
from rye.spaces.resolver import Resolver
from rye_spaces import SpaceRooms, still_leads_to

YAML_ITEM = "executor_id: subprocess\n"


@pytest.fixture
def rooms(tmp_path: Path) -> SpaceRooms:
    return SpaceRooms(tmp_path)


def test_a_short_id_is_the_one_file_of_that_stem(rooms: SpaceRooms) -> None:
    path = rooms.write("system", "rye/core/runtimes/python_runtime.yaml", YAML_ITEM)
    found = rooms.resolver().resolve("python_runtime")
    assert found.item_id == "rye/core/runtimes/python_runtime"
    assert found.path == path


def test_two_files_of_a_stem_in_the_deciding_space_are_an_error_that_lists_both(
    rooms: SpaceRooms,
) -> None:
    rooms.write("user", "a/lint.py")
    rooms.write("user", "b/lint.sh", "")
    rooms.write("system", "c/lint.py")
    root = rooms.folder / "user" / ".ai"
    with pytest.raises(AmbiguousIdError) as caught:
        rooms.resolver().resolve("lint")
    assert str(caught.value) == (
        f"short id 'lint' is ambiguous: 'a/lint' ({root}) and 'b/lint' ({root}); use the full id"
    )


def test_the_highest_space_that_has_any_decides(rooms: SpaceRooms) -> None:
    rooms.write("system", "a/lint.py")
    rooms.write("system", "b/lint.py")
    path = rooms.write("project", "c/lint.py")
    assert rooms.resolver().resolve("lint").path == path


def test_a_file_right_below_tools_has_its_stem_as_its_full_id(rooms: SpaceRooms) -> None:
    path = rooms.write("user", "lint.py")
    rooms.write("user", "a/lint.py")
    found = rooms.resolver().resolve("lint")
    assert (found.item_id, found.path) == ("lint", path)


def test_a_short_id_from_a_lower_space_does_not_see_the_project(rooms: SpaceRooms) -> None:
    rooms.write("project", "x/python_runtime.yaml", YAML_ITEM)
    ours = rooms.write("system", "rye/python_runtime.yaml", YAML_ITEM)
    resolver = rooms.resolver()
    found = resolver.resolve("python_runtime", from_space=resolver.spaces[1])
    assert found.path == ours


@pytest.mark.parametrize("name", ["project/deep/er/lint.py", "project/lint.yaml", "user/lint.odd"])
def test_a_file_of_that_stem_that_appears_anywhere_above_is_noticed(
    rooms: SpaceRooms, name: str
) -> None:
    rooms.write("system", "a/lint.py")
    rooms.write("project", "deep/other.py")
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("lint")
    assert still_leads_to(resolver, found)
    assert resolver.resolve("lint") is found
    space, _, rest = name.partition("/")
    path = rooms.write(space, rest)
    assert not still_leads_to(resolver, found)
    assert resolver.resolve("lint").path == path


def test_a_second_file_of_the_stem_that_appears_makes_the_answer_invalid(
    rooms: SpaceRooms,
) -> None:
    rooms.write("project", "a/lint.py")
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("lint")
    rooms.write("project", "b/lint.py")
    assert not still_leads_to(resolver, found)


def test_a_file_that_no_id_can_name_neither_takes_nor_blocks_a_short_id(
    rooms: SpaceRooms,
) -> None:
    path = rooms.write("project", "a/lint.py")
    rooms.write("project", "blank /lint.py")
    resolver = rooms.resolver()
    assert resolver.resolve("lint").path == path
    assert [each.item_id for each in resolver.iter_items()] == ["a/lint"]


def test_an_unknown_short_id_comes_with_the_nearest(rooms: SpaceRooms) -> None:
    rooms.write("system", "rye/core/runtimes/python_runtime.yaml", YAML_ITEM)
    with pytest.raises(ItemNotFoundError) as caught:
        rooms.resolver().resolve("pyton_runtime")
    assert str(caught.value) == (
        "there is no item 'pyton_runtime'; did you mean rye/core/runtimes/python_runtime?"
    )


def test_the_list_leaves_out_what_the_short_id_of_another_file_takes(rooms: SpaceRooms) -> None:
    rooms.write("user", "lint.py")
    path = rooms.write("project", "a/lint.py")
    resolver = rooms.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/lint"]
    assert [str(error) for error in resolver.conflicts()] == [
        f"'lint' is the short id of {path}, which takes precedence; rename one"
    ]


# ── primitives ───────────────────────────────────────────────────────────────────────────────

PRIMITIVES = ["subprocess", "http_client"]


@pytest.mark.parametrize("stem", PRIMITIVES)
@pytest.mark.parametrize("short", [True, False])
def test_a_primitive_needs_no_file(rooms: SpaceRooms, stem: str, short: bool) -> None:
    full = f"rye/core/primitives/{stem}"
    found = rooms.resolver().resolve(stem if short else full)
    assert (found.item_id, found.path, found.space.name) == (full, None, "system")
    assert still_leads_to(rooms.resolver(), found)


@pytest.mark.parametrize("stem", PRIMITIVES)
@pytest.mark.parametrize("space", ["project", "user"])
@pytest.mark.parametrize("folder", ["rye/core/primitives/", "rye/primitives/", ""])
def test_no_project_or_user_file_takes_the_place_of_a_primitive(
    rooms: SpaceRooms, space: str, stem: str, folder: str
) -> None:
    rooms.write(space, f"{folder}{stem}.py")
    resolver = rooms.resolver()
    for asked in (stem, f"rye/core/primitives/{stem}"):
        assert resolver.resolve(asked).path is None
    ours = rooms.write("system", f"rye/core/primitives/{stem}.yaml", "executor_id: null\n")
    for asked in (stem, f"rye/core/primitives/{stem}"):
        found = resolver.resolve(asked)
        assert (found.path, found.space.name) == (ours, "system")


def test_the_file_of_a_primitive_that_appears_is_noticed(rooms: SpaceRooms) -> None:
    rooms.write("system", "rye/core/primitives/other.yaml", YAML_ITEM)
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("subprocess")
    rooms.write("system", "rye/core/primitives/subprocess.yaml", "executor_id: null\n")
    assert not still_leads_to(resolver, found)


def test_a_file_in_the_place_of_a_primitive_is_not_listed(rooms: SpaceRooms) -> None:
    rooms.write("project", "rye/core/primitives/subprocess.py")
    rooms.write("project", "mine.py")
    assert [each.item_id for each in rooms.resolver().iter_items()] == ["mine"]


def test_the_reserved_ids_can_be_given(rooms: SpaceRooms) -> None:
    rooms.write("project", "acme/queue.py")
    resolver = Resolver(rooms.context, primitives=["acme/queue"])
    assert resolver.resolve("acme/queue").path is None
    assert resolver.resolve("queue").item_id == "acme/queue"
