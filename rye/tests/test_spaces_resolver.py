"""Full ids: precedence, shadowing, duplicates, and cached answers."""

import time
from pathlib import Path

import pytest
from rye.errors import AmbiguousIdError, ItemIdError, ItemNotFoundError
from rye.spaces.folders import is_settled
from rye.spaces.index import SpaceIndex
from rye.spaces.model import Space
from rye.spaces.resolver import Resolver
from rye_spaces import TemporarySpaces, has_same_answer


@pytest.fixture
def spaces(tmp_path: Path) -> TemporarySpaces:
    return TemporarySpaces(tmp_path)


def space_named(resolver: Resolver, name: str) -> Space:
    return next(space for space in resolver.spaces if space.name == name)


def test_the_spaces_are_sorted_by_precedence(spaces: TemporarySpaces) -> None:
    found = spaces.resolver().spaces
    assert [(space.name, space.precedence) for space in found] == [
        ("project", 3),
        ("user", 2),
        ("system", 1),
    ]
    assert found[2].bundle == "rye"


def test_a_project_file_shadows_the_user_file_which_shadows_the_system_file(
    spaces: TemporarySpaces,
) -> None:
    for space in ("system", "user", "project"):
        path = spaces.write(space, "a/tool.py")
        found = spaces.resolver().resolve("a/tool")
        assert (found.item_id, found.path, found.space.name) == ("a/tool", path, space)


def test_the_missing_paths_of_higher_precedence_are_recorded(spaces: TemporarySpaces) -> None:
    spaces.write("system", "a/tool.py")
    assert spaces.resolver().resolve("a/tool").absent == (
        spaces.tools("project") / "a/tool",
        spaces.tools("user") / "a/tool",
    )


@pytest.mark.parametrize(
    ("asking", "found_in"), [("project", "project"), ("user", "user"), ("system", "system")]
)
def test_an_item_sees_only_spaces_of_equal_or_lower_precedence(
    spaces: TemporarySpaces, asking: str, found_in: str
) -> None:
    for space in ("system", "user", "project"):
        spaces.write(space, "a/runtime.yaml", "executor_id: subprocess\n")
    resolver = spaces.resolver()
    found = resolver.resolve("a/runtime", from_space=space_named(resolver, asking))
    assert found.space.name == found_in


def test_a_user_item_cannot_use_a_project_runtime_and_the_error_says_where_it_is(
    spaces: TemporarySpaces,
) -> None:
    path = spaces.write("project", "a/runtime.yaml", "executor_id: subprocess\n")
    resolver = spaces.resolver()
    with pytest.raises(ItemNotFoundError) as caught:
        resolver.resolve("a/runtime", from_space=space_named(resolver, "user"))
    assert str(caught.value) == (
        "there is no item 'a/runtime' that an item of the user space may use "
        f"({path} is in the project space); did you mean a/runtime?"
    )


def test_an_answer_without_a_limit_is_not_used_for_a_limited_search(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("project", "a/tool.py")
    system = spaces.write("system", "a/tool.py")
    spaces.settle()
    resolver = spaces.resolver()
    resolver.resolve("a/tool")
    limited = resolver.resolve("a/tool", from_space=space_named(resolver, "system"))
    assert limited.path == system


def test_two_files_of_one_id_in_one_space_are_an_error_that_lists_both(
    spaces: TemporarySpaces,
) -> None:
    first = spaces.write("project", "a/tool.py")
    second = spaces.write("project", "a/tool.yaml", "executor_id: subprocess\n")
    with pytest.raises(AmbiguousIdError) as caught:
        spaces.resolver().resolve("a/tool")
    assert str(caught.value) == (f"'a/tool' is both {first} and {second}; remove or rename one")


def test_duplicates_in_a_shadowed_space_are_ignored(spaces: TemporarySpaces) -> None:
    path = spaces.write("project", "a/tool.py")
    spaces.write("user", "a/tool.py")
    spaces.write("user", "a/tool.sh", "")
    assert spaces.resolver().resolve("a/tool").path == path


def test_documents_beside_a_tool_do_not_make_its_id_ambiguous(spaces: TemporarySpaces) -> None:
    path = spaces.write("project", "a/tool.py")
    for name in ("tool.md", "tool.json", "tool.py~", "tool.pyc", "tool.unheard", "tool.test.py"):
        spaces.write("project", f"a/{name}", "")
    (spaces.tools("project") / "a/tool.yaml").mkdir()
    assert spaces.resolver().resolve("a/tool").path == path


def test_a_file_with_an_unknown_extension_is_found_by_id(spaces: TemporarySpaces) -> None:
    path = spaces.write("project", "a/tool.unheard", "")
    bare = spaces.write("project", "a/script", "")
    assert spaces.resolver().resolve("a/tool").path == path
    assert spaces.resolver().resolve("a/script").path == bare


@pytest.mark.parametrize("leftover", ["tool.py~", "tool.bak", "tool.pyc", "tool.md", ".tool.py"])
def test_a_backup_of_an_editor_does_not_become_the_tool(
    spaces: TemporarySpaces, leftover: str
) -> None:
    spaces.write("project", f"a/{leftover}")
    with pytest.raises(ItemNotFoundError):
        spaces.resolver().resolve("a/tool")


def test_an_id_with_an_extension_is_not_found_and_the_error_suggests_the_id(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("system", "rye/bash/bash.py")
    with pytest.raises(ItemNotFoundError) as caught:
        spaces.resolver().resolve("rye/bash/bash.py")
    assert str(caught.value) == ("there is no item 'rye/bash/bash.py'; did you mean rye/bash/bash?")
    assert caught.value.nearest == ("rye/bash/bash",)


def test_the_error_for_a_missing_item_suggests_similar_ids(spaces: TemporarySpaces) -> None:
    for name in ("rye/bash/bash.py", "rye/git/git.py", "rye/fs/grep.py"):
        spaces.write("system", name)
    resolver = spaces.resolver()
    assert resolver.nearest("rye/bsh/bash") == ["rye/bash/bash"]
    assert resolver.nearest("files/grep")[0] == "rye/fs/grep"
    assert resolver.nearest("git")[0] == "rye/git/git"
    assert resolver.nearest("entirely-unlike-anything") == []


def test_the_error_for_a_missing_item_in_empty_spaces_names_the_list_command(
    spaces: TemporarySpaces,
) -> None:
    with pytest.raises(ItemNotFoundError) as caught:
        spaces.resolver().resolve("zzz/qqq")
    assert str(caught.value) == (
        "there is no item 'zzz/qqq'; list the available items with: rye list"
    )


def test_an_invalid_id_is_refused_before_any_file_access(spaces: TemporarySpaces) -> None:
    outside = spaces.folder / "project" / "secret.py"
    outside.parent.mkdir()
    outside.write_text("")
    with pytest.raises(ItemIdError):
        spaces.resolver().resolve("../../secret")


def test_in_the_home_folder_the_project_space_is_the_user_space(tmp_path: Path) -> None:
    spaces = TemporarySpaces(tmp_path)
    spaces.write("user", "a/tool.py")
    at_home = TemporarySpaces(tmp_path)
    object.__setattr__(at_home.context, "project_path", at_home.context.user_space)
    resolver = at_home.resolver()
    assert [space.name for space in resolver.spaces] == ["user", "system"]
    assert resolver.resolve("a/tool").space.name == "user"


# ── cached answers ──────────────────────────────────────────────────────────────


def test_an_answer_is_used_again_while_nothing_changed(spaces: TemporarySpaces) -> None:
    spaces.write("system", "a/tool.py")
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("a/tool")
    assert has_same_answer(resolver, found)
    assert resolver.resolve("a/tool") is found


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("shadow", ["project/a/tool.py", "user/a/tool.yaml", "user/a/tool.odd"])
def test_a_file_that_appears_in_a_higher_space_is_noticed(
    spaces: TemporarySpaces, shadow: str, settled: bool
) -> None:
    spaces.write("system", "a/tool.py")
    spaces.write("project", "a/other.py")
    if settled:
        spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("a/tool")
    space, _, name = shadow.partition("/")
    path = spaces.write(space, name)
    assert not has_same_answer(resolver, found)
    assert resolver.resolve("a/tool").path == path


def test_a_file_that_disappears_is_noticed(spaces: TemporarySpaces) -> None:
    below = spaces.write("system", "a/tool.py")
    above = spaces.write("project", "a/tool.py")
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("a/tool")
    above.unlink()
    assert not has_same_answer(resolver, found)
    assert resolver.resolve("a/tool").path == below
    below.unlink()
    with pytest.raises(ItemNotFoundError):
        resolver.resolve("a/tool")


def test_a_duplicate_with_another_extension_that_appears_is_noticed(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("project", "a/tool.py")
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("a/tool")
    spaces.write("project", "a/tool.sh", "")
    assert not has_same_answer(resolver, found)


def test_a_folder_whose_times_were_set_back_is_noticed(spaces: TemporarySpaces) -> None:
    import os

    spaces.write("system", "a/tool.py")
    other = spaces.write("project", "a/other.py")
    before = other.parent.stat()
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("a/tool")
    spaces.write("project", "a/tool.py")
    os.utime(other.parent, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not has_same_answer(resolver, found)


def test_a_change_of_the_content_leaves_the_answer_valid(spaces: TemporarySpaces) -> None:
    path = spaces.write("project", "a/tool.py")
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("a/tool")
    path.write_text("other", encoding="utf-8")
    assert has_same_answer(resolver, found)


# ── listings ────────────────────────────────────────────────────────────────────────────────────


def test_the_listing_has_every_item_once_sorted_and_as_it_would_be_resolved(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("system", "rye/bash/bash.py")
    spaces.write("system", "rye/git/git.py")
    spaces.write("project", "rye/git/git.py")
    spaces.write("user", "mine.sh", "")
    spaces.write("user", "__pycache__/mine.py", "")
    spaces.write("user", "node_modules/x/y.js", "")
    spaces.write("user", "README.md", "")
    resolver = spaces.resolver()
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
        assert has_same_answer(resolver, each)
        assert resolver.resolve(each.item_id).absent == each.absent


def test_ids_that_cannot_be_resolved_are_reported_as_conflicts_and_not_listed(
    spaces: TemporarySpaces,
) -> None:
    first = spaces.write("project", "a/tool.py")
    second = spaces.write("project", "a/tool.sh", "")
    spaces.write("project", "a/fine.py")
    resolver = spaces.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/fine"]
    assert [str(error) for error in resolver.conflicts()] == [
        f"'a/tool' is both {first} and {second}; remove or rename one"
    ]


def test_the_listing_follows_changes_in_the_folders(spaces: TemporarySpaces) -> None:
    spaces.write("project", "a/one.py")
    spaces.settle()
    resolver = spaces.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/one"]
    two = spaces.write("project", "a/b/two.py")
    assert [each.item_id for each in resolver.iter_items()] == ["a/b/two", "a/one"]
    two.unlink()
    two.parent.rmdir()
    assert [each.item_id for each in resolver.iter_items()] == ["a/one"]


def test_a_folder_that_is_moved_away_disappears_from_the_listing(spaces: TemporarySpaces) -> None:
    spaces.write("project", "a/one.py")
    resolver = spaces.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/one"]
    spaces.tools("project").parent.rename(spaces.folder / "away")
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
def test_a_folder_that_changed_just_now_is_not_settled(
    age_ns: int, changed: int, settled: bool
) -> None:
    # A time in whole seconds comes from a file system without finer times.
    assert is_settled((1, 2, changed, changed), changed + age_ns) is settled


def test_folders_with_times_in_the_future_are_not_cached(
    spaces: TemporarySpaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the clock was set back, a later change could get the time of an earlier one."""
    spaces.write("system", "a/tool.py")
    spaces.settle()
    resolver = spaces.resolver()
    index = SpaceIndex(space_named(resolver, "system"))
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert resolver.watch([resolver.resolve("a/tool")]) is None
    assert index.refresh() is not index.refresh()
    monkeypatch.undo()
    assert resolver.watch([resolver.resolve("a/tool")]) is not None
    index.refresh()
    assert index.refresh() is index.refresh()
