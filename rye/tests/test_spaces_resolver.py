"""Full ids: precedence, shadowing, duplicates, and answers that are remembered."""

import time
from pathlib import Path

import pytest
from rye.errors import AmbiguousIdError, ItemIdError, ItemNotFoundError
from rye.spaces.folders import is_settled
from rye.spaces.index import SpaceIndex
from rye.spaces.model import Space
from rye.spaces.resolver import Resolver
from rye_spaces import SpaceRooms, still_leads_to


@pytest.fixture
def rooms(tmp_path: Path) -> SpaceRooms:
    return SpaceRooms(tmp_path)


def space_named(resolver: Resolver, name: str) -> Space:
    return next(space for space in resolver.spaces if space.name == name)


def test_the_spaces_stand_in_the_order_of_their_precedence(rooms: SpaceRooms) -> None:
    spaces = rooms.resolver().spaces
    assert [(space.name, space.precedence) for space in spaces] == [
        ("project", 3),
        ("user", 2),
        ("system", 1),
    ]
    assert spaces[2].bundle == "rye"


def test_a_project_file_shadows_the_user_file_which_shadows_the_system_file(
    rooms: SpaceRooms,
) -> None:
    for space in ("system", "user", "project"):
        path = rooms.write(space, "a/tool.py")
        found = rooms.resolver().resolve("a/tool")
        assert (found.item_id, found.path, found.space.name) == ("a/tool", path, space)


def test_the_absent_paths_of_higher_precedence_are_remembered(rooms: SpaceRooms) -> None:
    rooms.write("system", "a/tool.py")
    assert rooms.resolver().resolve("a/tool").absent == (
        rooms.tools("project") / "a/tool",
        rooms.tools("user") / "a/tool",
    )


@pytest.mark.parametrize(
    ("asking", "found_in"), [("project", "project"), ("user", "user"), ("system", "system")]
)
def test_an_item_sees_only_spaces_of_equal_or_lower_precedence(
    rooms: SpaceRooms, asking: str, found_in: str
) -> None:
    for space in ("system", "user", "project"):
        rooms.write(space, "a/runtime.yaml", "executor_id: subprocess\n")
    resolver = rooms.resolver()
    found = resolver.resolve("a/runtime", from_space=space_named(resolver, asking))
    assert found.space.name == found_in


def test_a_user_item_cannot_use_a_project_runtime_and_is_told_where_that_is(
    rooms: SpaceRooms,
) -> None:
    path = rooms.write("project", "a/runtime.yaml", "executor_id: subprocess\n")
    resolver = rooms.resolver()
    with pytest.raises(ItemNotFoundError) as caught:
        resolver.resolve("a/runtime", from_space=space_named(resolver, "user"))
    assert str(caught.value) == (
        "there is no item 'a/runtime' that an item of the user space may use "
        f"({path} is in the project space); did you mean a/runtime?"
    )


def test_what_was_found_without_a_limit_is_not_given_to_a_limited_question(
    rooms: SpaceRooms,
) -> None:
    rooms.write("project", "a/tool.py")
    system = rooms.write("system", "a/tool.py")
    rooms.settle()
    resolver = rooms.resolver()
    resolver.resolve("a/tool")
    limited = resolver.resolve("a/tool", from_space=space_named(resolver, "system"))
    assert limited.path == system


def test_two_files_of_one_id_in_one_space_are_an_error_that_lists_both(rooms: SpaceRooms) -> None:
    first = rooms.write("project", "a/tool.py")
    second = rooms.write("project", "a/tool.yaml", "executor_id: subprocess\n")
    with pytest.raises(AmbiguousIdError) as caught:
        rooms.resolver().resolve("a/tool")
    assert str(caught.value) == (f"'a/tool' is both {first} and {second}; remove or rename one")


def test_the_duplicates_of_a_space_that_is_shadowed_do_no_harm(rooms: SpaceRooms) -> None:
    path = rooms.write("project", "a/tool.py")
    rooms.write("user", "a/tool.py")
    rooms.write("user", "a/tool.sh", "")
    assert rooms.resolver().resolve("a/tool").path == path


def test_documents_beside_a_tool_do_not_make_its_id_ambiguous(rooms: SpaceRooms) -> None:
    path = rooms.write("project", "a/tool.py")
    for name in ("tool.md", "tool.json", "tool.py~", "tool.pyc", "tool.unheard", "tool.test.py"):
        rooms.write("project", f"a/{name}", "")
    (rooms.tools("project") / "a/tool.yaml").mkdir()
    assert rooms.resolver().resolve("a/tool").path == path


def test_a_language_that_nobody_listed_is_found_by_id(rooms: SpaceRooms) -> None:
    path = rooms.write("project", "a/tool.unheard", "")
    bare = rooms.write("project", "a/script", "")
    assert rooms.resolver().resolve("a/tool").path == path
    assert rooms.resolver().resolve("a/script").path == bare


@pytest.mark.parametrize("leftover", ["tool.py~", "tool.bak", "tool.pyc", "tool.md", ".tool.py"])
def test_what_an_editor_left_behind_does_not_become_the_tool(
    rooms: SpaceRooms, leftover: str
) -> None:
    rooms.write("project", f"a/{leftover}")
    with pytest.raises(ItemNotFoundError):
        rooms.resolver().resolve("a/tool")


def test_an_id_with_its_extension_is_not_found_and_told_the_right_one(rooms: SpaceRooms) -> None:
    rooms.write("system", "rye/bash/bash.py")
    with pytest.raises(ItemNotFoundError) as caught:
        rooms.resolver().resolve("rye/bash/bash.py")
    assert str(caught.value) == ("there is no item 'rye/bash/bash.py'; did you mean rye/bash/bash?")
    assert caught.value.nearest == ("rye/bash/bash",)


def test_a_missing_item_comes_with_the_nearest_names(rooms: SpaceRooms) -> None:
    for name in ("rye/bash/bash.py", "rye/git/git.py", "rye/fs/grep.py"):
        rooms.write("system", name)
    resolver = rooms.resolver()
    assert resolver.nearest("rye/bsh/bash") == ["rye/bash/bash"]
    assert resolver.nearest("files/grep")[0] == "rye/fs/grep"
    assert resolver.nearest("git")[0] == "rye/git/git"
    assert resolver.nearest("entirely-unlike-anything") == []


def test_a_missing_item_in_empty_spaces_points_to_the_list(rooms: SpaceRooms) -> None:
    with pytest.raises(ItemNotFoundError) as caught:
        rooms.resolver().resolve("zzz/qqq")
    assert str(caught.value) == (
        "there is no item 'zzz/qqq'; list the available items with: rye list"
    )


def test_an_id_that_is_no_id_is_refused_before_any_file_is_looked_at(rooms: SpaceRooms) -> None:
    outside = rooms.folder / "project" / "secret.py"
    outside.parent.mkdir()
    outside.write_text("")
    with pytest.raises(ItemIdError):
        rooms.resolver().resolve("../../secret")


def test_called_from_home_what_lies_there_is_the_users(tmp_path: Path) -> None:
    rooms = SpaceRooms(tmp_path)
    rooms.write("user", "a/tool.py")
    at_home = SpaceRooms(tmp_path)
    object.__setattr__(at_home.context, "project_path", at_home.context.user_space)
    resolver = at_home.resolver()
    assert [space.name for space in resolver.spaces] == ["user", "system"]
    assert resolver.resolve("a/tool").space.name == "user"


# ── answers that are remembered ──────────────────────────────────────────────────────────────


def test_an_answer_holds_while_nothing_changed(rooms: SpaceRooms) -> None:
    rooms.write("system", "a/tool.py")
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("a/tool")
    assert still_leads_to(resolver, found)
    assert resolver.resolve("a/tool") is found


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("shadow", ["project/a/tool.py", "user/a/tool.yaml", "user/a/tool.odd"])
def test_a_file_that_appears_above_is_noticed(
    rooms: SpaceRooms, shadow: str, settled: bool
) -> None:
    rooms.write("system", "a/tool.py")
    rooms.write("project", "a/other.py")
    if settled:
        rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("a/tool")
    space, _, name = shadow.partition("/")
    path = rooms.write(space, name)
    assert not still_leads_to(resolver, found)
    assert resolver.resolve("a/tool").path == path


def test_a_file_that_is_gone_is_noticed(rooms: SpaceRooms) -> None:
    below = rooms.write("system", "a/tool.py")
    above = rooms.write("project", "a/tool.py")
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("a/tool")
    above.unlink()
    assert not still_leads_to(resolver, found)
    assert resolver.resolve("a/tool").path == below
    below.unlink()
    with pytest.raises(ItemNotFoundError):
        resolver.resolve("a/tool")


def test_a_twin_with_another_extension_that_appears_is_noticed(rooms: SpaceRooms) -> None:
    rooms.write("project", "a/tool.py")
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("a/tool")
    rooms.write("project", "a/tool.sh", "")
    assert not still_leads_to(resolver, found)


def test_a_folder_whose_times_were_set_back_is_noticed(rooms: SpaceRooms) -> None:
    import os

    rooms.write("system", "a/tool.py")
    other = rooms.write("project", "a/other.py")
    before = other.parent.stat()
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("a/tool")
    rooms.write("project", "a/tool.py")
    os.utime(other.parent, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not still_leads_to(resolver, found)


def test_a_change_of_the_content_leaves_the_answer_valid(rooms: SpaceRooms) -> None:
    path = rooms.write("project", "a/tool.py")
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("a/tool")
    path.write_text("other", encoding="utf-8")
    assert still_leads_to(resolver, found)


# ── lists ────────────────────────────────────────────────────────────────────────────────────


def test_the_list_has_every_item_once_in_order_and_where_it_would_be_found(
    rooms: SpaceRooms,
) -> None:
    rooms.write("system", "rye/bash/bash.py")
    rooms.write("system", "rye/git/git.py")
    rooms.write("project", "rye/git/git.py")
    rooms.write("user", "mine.sh", "")
    rooms.write("user", "__pycache__/mine.py", "")
    rooms.write("user", "node_modules/x/y.js", "")
    rooms.write("user", "README.md", "")
    resolver = rooms.resolver()
    assert [(each.item_id, each.space.name) for each in resolver.iter_items()] == [
        ("mine", "user"),
        ("rye/bash/bash", "system"),
        ("rye/git/git", "project"),
    ]
    assert [each.item_id for each in resolver.iter_items(resolver.spaces[2])] == [
        "rye/bash/bash",
        "rye/git/git",
    ]
    for each in resolver.iter_items():
        assert still_leads_to(resolver, each)
        assert resolver.resolve(each.item_id).absent == each.absent


def test_what_no_id_leads_to_is_left_out_of_the_list_and_told_apart(rooms: SpaceRooms) -> None:
    first = rooms.write("project", "a/tool.py")
    second = rooms.write("project", "a/tool.sh", "")
    rooms.write("project", "a/fine.py")
    resolver = rooms.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/fine"]
    assert [str(error) for error in resolver.conflicts()] == [
        f"'a/tool' is both {first} and {second}; remove or rename one"
    ]


def test_the_list_follows_changes_of_the_folders(rooms: SpaceRooms) -> None:
    rooms.write("project", "a/one.py")
    rooms.settle()
    resolver = rooms.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/one"]
    two = rooms.write("project", "a/b/two.py")
    assert [each.item_id for each in resolver.iter_items()] == ["a/b/two", "a/one"]
    two.unlink()
    two.parent.rmdir()
    assert [each.item_id for each in resolver.iter_items()] == ["a/one"]


def test_a_folder_that_is_deleted_at_once_is_gone_from_the_list(rooms: SpaceRooms) -> None:
    rooms.write("project", "a/one.py")
    resolver = rooms.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/one"]
    rooms.tools("project").parent.rename(rooms.folder / "away")
    assert list(resolver.iter_items()) == []
    assert list(resolver.conflicts()) == []
    assert resolver.nearest("a/one") == []


@pytest.mark.parametrize(
    ("age_ns", "changed", "settled"),
    [
        (1_000_000, 5_000_000_001, False),
        (150_000_000, 5_000_000_001, False),
        (250_000_000, 5_000_000_001, True),
        (-60_000_000_000, 5_000_000_001, False),
        (1_500_000_000, 5_000_000_000, False),
        (2_500_000_000, 5_000_000_000, True),
    ],
)
def test_a_folder_too_young_for_the_clock_to_tell_changes_apart_is_not_remembered(
    age_ns: int, changed: int, settled: bool
) -> None:
    # A change in whole seconds is by a file system that has no finer clock.
    assert is_settled((1, 2, changed, changed), changed + age_ns) is settled


def test_nothing_is_remembered_of_folders_that_seem_to_be_of_the_future(
    rooms: SpaceRooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the clock was set back: a later change could bear the time of an earlier one."""
    rooms.write("system", "a/tool.py")
    rooms.settle()
    resolver = rooms.resolver()
    index = SpaceIndex(space_named(resolver, "system"))
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert resolver.watch([resolver.resolve("a/tool")]) is None
    assert index.refresh() is not index.refresh()
    monkeypatch.undo()
    assert resolver.watch([resolver.resolve("a/tool")]) is not None
    index.refresh()
    assert index.refresh() is index.refresh()
