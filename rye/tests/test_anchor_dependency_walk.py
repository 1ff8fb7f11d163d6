"""Searching for dependencies: links out of the folder, odd files, and limits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rye.errors import AnchorError, ItemFormatError, UnsafePathError
from rye.executor.chain import dependencies
from rye_dependencies import TREE, DependencyWorkshop

Link = Callable[[Path, Path], None]


@pytest.fixture
def shop(tmp_path: Path) -> DependencyWorkshop:
    return DependencyWorkshop(tmp_path)


def to_outside_file(root: Path, outside: Path) -> None:
    (outside / "evil.py").write_text("evil")
    (root / "link.py").symlink_to(outside / "evil.py")


def to_outside_folder(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)


def to_outside_by_steps(root: Path, outside: Path) -> None:
    (root / "lib/hop.py").symlink_to("../../../../../outside/evil.py")
    (outside / "evil.py").write_text("evil")


def to_an_excluded_folder(root: Path, outside: Path) -> None:
    (root / "link").symlink_to("__pycache__")


def to_a_file_that_is_missing(root: Path, outside: Path) -> None:
    (root / "link.py").symlink_to(outside / "later.py")


def to_itself(root: Path, outside: Path) -> None:
    (root / "link.py").symlink_to("link.py")


@pytest.mark.parametrize(
    "make",
    [
        to_outside_file,
        to_outside_folder,
        to_outside_by_steps,
        to_an_excluded_folder,
        to_a_file_that_is_missing,
    ],
)
def test_a_link_out_of_the_verified_folder_is_refused(shop: DependencyWorkshop, make: Link) -> None:
    outside = shop.root / "outside"
    outside.mkdir()
    make(shop.tools("project") / "pkg", outside)
    with pytest.raises(AnchorError, match=r"a symbolic link leads .* out of what is verified"):
        shop.verified({"scope": "tool_dir"})


def test_a_link_to_itself_is_refused(shop: DependencyWorkshop) -> None:
    to_itself(shop.tools("project") / "pkg", shop.root)
    with pytest.raises((AnchorError, UnsafePathError)):
        shop.verified({"scope": "tool_dir"})


def test_a_link_inside_the_verified_folder_is_accepted(shop: DependencyWorkshop) -> None:
    root = shop.tools("project") / "pkg"
    (root / "alias.py").symlink_to("lib/deep/util.py")
    (root / "loop").symlink_to("lib")
    found = shop.verified({"scope": "tool_dir"})
    assert found["alias.py"] == found["lib/deep/util.py"]
    assert list(found) == ["alias.py", *TREE]


def test_a_link_to_a_folder_is_refused_without_recursion(shop: DependencyWorkshop) -> None:
    (shop.tools("project") / "pkg/link").symlink_to("lib")
    with pytest.raises(AnchorError):
        shop.verified({"scope": "tool_siblings"})


def test_data_may_be_linked_from_elsewhere(shop: DependencyWorkshop) -> None:
    (shop.tools("project") / "pkg/data.bin").symlink_to("/dev/null")
    assert list(shop.verified({"scope": "tool_dir"})) == TREE


def test_a_fifo_is_refused_and_does_not_block(shop: DependencyWorkshop) -> None:
    os.mkfifo(shop.tools("project") / "pkg/pipe.py")
    with pytest.raises(UnsafePathError):
        shop.verified({"scope": "tool_dir"})


def test_a_dependency_that_is_too_large_is_refused(shop: DependencyWorkshop) -> None:
    shop.file("pkg/big.py", "#" * (1024 * 1024 + 1), signed=False)
    with pytest.raises(ItemFormatError, match="is larger than 1048576 bytes"):
        shop.verified({"scope": "tool_dir"})


def test_the_number_of_files_is_bounded(
    shop: DependencyWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "MAX_FILES", 3)
    root = shop.tools("project") / "pkg"
    with pytest.raises(AnchorError) as caught:
        shop.verified({"scope": "tool_dir"})
    assert str(caught.value) == (
        f"verify_deps of {root}/tool.py: {root} contains too many files to verify; "
        "narrow scope, extensions or exclude_dirs"
    )


def test_the_number_of_files_of_several_walks_is_bounded(
    shop: DependencyWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "MAX_FILES", 3)
    lib = shop.tools("system") / "lib"
    lib.mkdir()
    for name in ("a.py", "b.py"):
        (lib / name).write_text("pass\n")
    with pytest.raises(AnchorError) as caught:
        shop.verified({"scope": "tool_siblings"}, {"mode": "never", "lib": "lib"})
    assert str(caught.value) == (
        "'pkg/tool' has 4 dependencies to verify, more than 3; "
        "narrow scope, extensions or exclude_dirs of its verify_deps"
    )


def test_the_number_of_entries_is_bounded(
    shop: DependencyWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "MAX_ENTRIES", 3)
    root = shop.tools("project") / "pkg"
    with pytest.raises(AnchorError) as caught:
        shop.verified({"scope": "tool_dir", "extensions": [".none"]})
    assert str(caught.value) == (
        f"verify_deps of {root}/tool.py: {root} contains too many files to verify; "
        "narrow scope, extensions or exclude_dirs"
    )
