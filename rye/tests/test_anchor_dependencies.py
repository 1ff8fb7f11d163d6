"""Dependencies: which files are verified before a tool runs, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.signing import generate_keypair, save_keypair
from rye.errors import AnchorError, ChangedError, ItemFormatError, UnsafePathError, UnsignedError
from rye.executor.chain import dependencies, snapshot
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.chain.dependencies import verify_dependencies
from rye.executor.chain.snapshot import Library
from rye.items.element import ChainElement, ItemFile
from rye.trust.model import Verdict
from rye.trust.operations import sign_item
from rye.trust.verify import verify_item
from rye_elements import Workshop


class Shop(Workshop):
    """A workshop whose user has a key."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        save_keypair(*generate_keypair(), self.root / "user/.ai/keys")

    def file(self, name: str, text: str = "x = 1\n", *, signed: bool = True) -> Path:
        """A file below the project's tools."""
        path = self.tools("project") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if signed:
            sign_item(path, self.context)
        return path

    def chain(self, verify: Any, anchor: Any = None, /, **tool: Any) -> list[ChainElement]:
        """A signed tool ``pkg/tool.py`` with a runtime that declares the rest."""
        element = self.element("pkg/tool.py", text="print()\n", **tool)
        assert element.path is not None
        sign_item(element.path, self.context)
        runtime = self.element("run.yaml", space="system", verify_deps=verify, anchor=anchor)
        return [element, runtime, self.primitive()]

    def verified(self, verify: Any, anchor: Any = None, /, **tool: Any) -> dict[str, str]:
        """What is verified for that chain."""
        chain = self.chain(verify, anchor, **tool)
        verify_file = Library(self.context).snapshot().verify_file
        return verify_dependencies(chain, resolve_anchor(chain, self.context), verify_file)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.file("pkg/helper.py")
    shop.file("pkg/lib/deep/util.py")
    shop.file("pkg/lib/code.js")
    shop.file("pkg/notes.txt", signed=False)
    shop.file("pkg/__pycache__/junk.py", signed=False)
    shop.file("other/thing.py", signed=False)
    return shop


ALWAYS = {"mode": "always"}
TREE = ["helper.py", "lib/code.js", "lib/deep/util.py", "tool.py"]


@pytest.mark.parametrize(
    ("verify", "anchor", "expected"),
    [
        (None, ALWAYS, []),
        ({"enabled": False}, ALWAYS, []),
        ({}, ALWAYS, TREE),
        ({"scope": "anchor"}, None, []),
        ({"scope": "anchor", "recursive": False}, ALWAYS, ["helper.py", "tool.py"]),
        ({"scope": "tool_dir"}, None, TREE),
        ({"scope": "tool_dir", "recursive": False}, None, ["helper.py", "tool.py"]),
        ({"scope": "tool_siblings"}, None, ["helper.py", "tool.py"]),
        ({"scope": "tool_siblings", "recursive": True}, None, ["helper.py", "tool.py"]),
        ({"scope": "tool_file"}, None, ["tool.py"]),
        ({"scope": "tool_dir", "extensions": [".js"]}, None, ["lib/code.js"]),
        (
            {"scope": "tool_dir", "exclude_dirs": ["__pycache__", "deep"]},
            None,
            ["helper.py", "lib/code.js", "tool.py"],
        ),
    ],
)
def test_scopes(shop: Shop, verify: Any, anchor: Any, expected: list[str]) -> None:
    found = shop.verified(verify, anchor)
    assert list(found) == expected
    assert all(len(digest) == 64 for digest in found.values())


def test_an_anchor_at_the_parent_covers_more_than_the_tool(shop: Shop) -> None:
    shop.file("pkg/inner/tool.py")
    chain = shop.chain({}, {"mode": "always", "root": "tool_parent"})
    inner = shop.element("pkg/inner/tool.py", text=shop.file("pkg/inner/tool.py").read_text())
    anchor = resolve_anchor([inner, *chain[1:]], shop.context)
    assert anchor is not None
    found = verify_dependencies([inner, *chain[1:]], anchor, trusting)
    assert list(found) == [
        "helper.py",
        "inner/tool.py",
        "lib/code.js",
        "lib/deep/util.py",
        "tool.py",
    ]


def trusting(path: str, root: Path, name: str) -> str:
    return str(Path(path).stat().st_size)


def test_an_unsigned_dependency_is_refused(shop: Shop) -> None:
    path = shop.file("pkg/lib/new.py", signed=False)
    with pytest.raises(UnsignedError) as caught:
        shop.verified({"scope": "tool_dir"})
    assert str(caught.value) == (
        f"pkg/tool → lib/new.py is not signed: {path}; "
        f"read the file, then sign it with: rye sign {path}"
    )


def test_a_dependency_that_changed_after_it_was_verified_is_noticed(shop: Shop) -> None:
    before = shop.verified({"scope": "tool_dir"})
    path = shop.tools("project") / "pkg/helper.py"
    path.write_text(path.read_text() + "evil = 1\n")
    with pytest.raises(ChangedError):
        shop.verified({"scope": "tool_dir"})
    sign_item(path, shop.context)
    after = shop.verified({"scope": "tool_dir"})
    assert {name for name in after if after[name] != before[name]} == {"helper.py"}


def test_what_is_judged_is_what_was_hashed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read once: a change in between cannot put other bytes under the hash."""
    path = shop.tools("project") / "pkg/lib/code.js"
    before = shop.verified({"scope": "tool_dir"})

    def slow(file: ItemFile, *rest: Any) -> Verdict:
        if file.path == path:
            path.write_text("evil")
        return verify_item(file, *rest)

    monkeypatch.setattr(snapshot, "verify_item", slow)
    assert shop.verified({"scope": "tool_dir"}) == before
    assert path.read_text() == "evil"
    with pytest.raises(UnsignedError):
        shop.verified({"scope": "tool_dir"})


def test_a_tool_cannot_switch_off_the_check_of_its_runtime(shop: Shop) -> None:
    found = shop.verified({"scope": "tool_dir"}, verify_deps={"enabled": False})
    assert list(found) == TREE


def test_a_tool_may_ask_for_more(shop: Shop) -> None:
    found = shop.verified({"scope": "tool_file"}, verify_deps={"scope": "tool_siblings"})
    assert list(found) == ["helper.py", "tool.py"]


def test_the_library_of_a_runtime_is_always_verified(shop: Shop) -> None:
    lib = shop.tools("system") / "lib/x"
    lib.mkdir(parents=True)
    (lib / "host.py").write_text("pass\n")
    anchor = {"mode": "never", "lib": "lib"}
    with pytest.raises(UnsignedError):
        shop.verified(None, anchor)
    sign_item(lib / "host.py", shop.context)
    assert list(shop.verified(None, anchor)) == ["{runtime_lib}/x/host.py"]
    (lib / "out").symlink_to("/")
    with pytest.raises(AnchorError) as caught:
        shop.verified(None, anchor)
    assert str(caught.value) == (
        f"the library of {shop.tools('system')}/run.yaml: a symbolic link leads {lib}/out out of "
        "what is verified; put the file itself there, or remove the link"
    )


def test_a_tool_cannot_switch_off_the_check_of_its_runtime_by_its_anchor(shop: Shop) -> None:
    """It would still reach the files beside it, as by ``import "./helper.mjs"``."""
    for own in ({"mode": "never"}, {"enabled": False}, {"mode": "auto", "markers_any": ["none"]}):
        assert list(shop.verified({"scope": "anchor"}, ALWAYS, anchor=own)) == TREE
    shop.file("pkg/lib/new.py", signed=False)
    with pytest.raises(UnsignedError):
        shop.verified({"scope": "anchor"}, ALWAYS, anchor={"mode": "never"})


def test_a_tool_cannot_narrow_the_check_of_its_runtime_by_its_anchor(shop: Shop) -> None:
    wide = {"mode": "always", "root": "project_path"}
    shop.file("pkg/inner.py")
    (shop.project / "unsigned.py").write_text("x = 1\n")
    with pytest.raises(UnsignedError, match=r"pkg/tool → \S*unsigned\.py is not signed"):
        shop.verified({"exclude_dirs": ["other", "__pycache__"]}, wide, anchor={"root": "tool_dir"})


def test_a_tool_may_do_without_an_anchor_that_its_runtime_would_not_use(shop: Shop) -> None:
    unmarked = {"mode": "auto", "markers_any": ["package.json"]}
    assert shop.verified({"scope": "anchor"}, unmarked, anchor={"mode": "never"}) == {}
    shop.file("pkg/package.json", "{}", signed=False)
    assert list(shop.verified({"scope": "anchor"}, unmarked, anchor={"mode": "never"})) == TREE


@pytest.mark.parametrize(
    "name", ["json.pyc", "helper.so", "helper.cpython-311-x86_64-linux-gnu.so", "helper.pyd",
             "evil.pth", "lib/deep/helper.node"],
)  # fmt: skip
@pytest.mark.parametrize("linked", [False, True])
def test_what_would_be_imported_but_cannot_be_signed_is_refused(
    shop: Shop, name: str, linked: bool
) -> None:
    path = shop.tools("project") / "pkg" / name
    if linked:
        path.symlink_to("/dev/null")
    else:
        path.write_bytes(b"evil")
    with pytest.raises(AnchorError) as caught:
        shop.verified({"scope": "tool_dir", "extensions": [".py"]})
    assert str(caught.value) == (
        f"verify_deps of {shop.tools('project')}/pkg/tool.py: {path} could be imported, "
        "but cannot be signed; remove it, or put its source there instead"
    )


def test_the_library_of_a_runtime_cannot_be_shadowed_by_bytecode(shop: Shop) -> None:
    lib = shop.tools("system") / "lib"
    (lib / "__pycache__").mkdir(parents=True)
    (lib / "__pycache__/host.cpython-311.pyc").write_bytes(b"")
    assert shop.verified(None, {"mode": "never", "lib": "lib"}) == {}
    (lib / "json.pyc").write_bytes(b"evil")
    with pytest.raises(AnchorError) as caught:
        shop.verified(None, {"mode": "never", "lib": "lib"})
    assert str(caught.value) == (
        f"the library of {shop.tools('system')}/run.yaml: {lib}/json.pyc could be imported, "
        "but cannot be signed; remove it, or put its source there instead"
    )


def test_bytecode_of_sources_is_left_alone_even_where_its_folder_is_searched(shop: Shop) -> None:
    (shop.tools("project") / "pkg/__pycache__/junk.py").unlink()
    shop.file("pkg/__pycache__/helper.cpython-311.pyc", signed=False)
    assert list(shop.verified({"scope": "tool_dir", "exclude_dirs": []})) == TREE


Link = Callable[[Path, Path], None]


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
def test_a_link_that_leads_out_of_what_is_verified_is_refused(shop: Shop, make: Link) -> None:
    outside = shop.root / "outside"
    outside.mkdir()
    make(shop.tools("project") / "pkg", outside)
    with pytest.raises(AnchorError, match=r"a symbolic link leads .* out of what is verified"):
        shop.verified({"scope": "tool_dir"})


def test_a_link_to_itself_is_refused(shop: Shop) -> None:
    to_itself(shop.tools("project") / "pkg", shop.root)
    with pytest.raises((AnchorError, UnsafePathError)):
        shop.verified({"scope": "tool_dir"})


def test_a_link_that_stays_inside_is_fine(shop: Shop) -> None:
    root = shop.tools("project") / "pkg"
    (root / "alias.py").symlink_to("lib/deep/util.py")
    (root / "loop").symlink_to("lib")
    found = shop.verified({"scope": "tool_dir"})
    assert found["alias.py"] == found["lib/deep/util.py"]
    assert list(found) == ["alias.py", *TREE]


def test_a_link_to_a_folder_that_a_flat_check_would_not_see_is_refused(shop: Shop) -> None:
    (shop.tools("project") / "pkg/link").symlink_to("lib")
    with pytest.raises(AnchorError):
        shop.verified({"scope": "tool_siblings"})


def test_data_may_be_linked_from_elsewhere(shop: Shop) -> None:
    (shop.tools("project") / "pkg/data.bin").symlink_to("/dev/null")
    assert list(shop.verified({"scope": "tool_dir"})) == TREE


def test_a_fifo_is_refused_and_does_not_block(shop: Shop) -> None:
    os.mkfifo(shop.tools("project") / "pkg/pipe.py")
    with pytest.raises(UnsafePathError):
        shop.verified({"scope": "tool_dir"})


def test_a_dependency_that_is_too_large_is_refused(shop: Shop) -> None:
    shop.file("pkg/big.py", "#" * (1024 * 1024 + 1), signed=False)
    with pytest.raises(ItemFormatError, match="is larger than 1048576 bytes"):
        shop.verified({"scope": "tool_dir"})


def test_the_number_of_files_is_bounded(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "MAX_FILES", 3)
    root = shop.tools("project") / "pkg"
    with pytest.raises(AnchorError) as caught:
        shop.verified({"scope": "tool_dir"})
    assert str(caught.value) == (
        f"verify_deps of {root}/tool.py: {root} contains too many files to verify; "
        "narrow scope, extensions or exclude_dirs"
    )


def test_the_number_of_files_of_several_walks_is_bounded(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
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


def test_the_walk_itself_is_bounded(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "MAX_ENTRIES", 3)
    root = shop.tools("project") / "pkg"
    with pytest.raises(AnchorError) as caught:
        shop.verified({"scope": "tool_dir", "extensions": [".none"]})
    assert str(caught.value) == (
        f"verify_deps of {root}/tool.py: {root} contains too many files to verify; "
        "narrow scope, extensions or exclude_dirs"
    )


@pytest.mark.parametrize(
    ("verify", "problem"),
    [
        (
            {"scopes": "x"},
            ("scopes: unknown key; use one of enabled, scope, recursive, extensions, exclude_dirs"),
        ),
        (
            {"scope": "all"},
            (
                "scope: expected one of anchor, tool_dir, tool_siblings, tool_file; "
                "choose one of them"
            ),
        ),
        ({"recursive": 1}, "recursive: expected true or false, got int; correct it"),
        ({"extensions": ["py"]}, "extensions: 'py' does not start with a dot; write it as '.py'"),
        ({"extensions": ".py"}, "extensions: expected a list of texts; correct it"),
        ({"exclude_dirs": [1]}, "exclude_dirs: expected a list of texts; correct it"),
    ],
)
def test_a_malformed_declaration_names_file_and_key(
    shop: Shop, verify: dict[str, Any], problem: str
) -> None:
    with pytest.raises(AnchorError) as caught:
        shop.verified(verify)
    assert str(caught.value) == f"{shop.tools('system')}/run.yaml: verify_deps.{problem}"


def test_a_primitive_has_no_dependencies(shop: Shop) -> None:
    assert verify_dependencies([shop.primitive()], None, trusting) == {}
