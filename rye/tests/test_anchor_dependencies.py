"""Dependencies: which files are verified before a tool runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rye.errors import AnchorError, ChangedError, UnsignedError
from rye.executor.chain import snapshot
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.chain.dependencies import verify_dependencies
from rye.items.element import ItemFile
from rye.trust.operations import sign_item
from rye.trust.verify import Verdict, verify_item
from rye_dependencies import TREE, DependencyWorkshop

ALWAYS = {"mode": "always"}


@pytest.fixture
def shop(tmp_path: Path) -> DependencyWorkshop:
    return DependencyWorkshop(tmp_path)


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
def test_scopes(shop: DependencyWorkshop, verify: Any, anchor: Any, expected: list[str]) -> None:
    found = shop.verified(verify, anchor)
    assert list(found) == expected
    assert all(len(digest) == 64 for digest in found.values())


def test_an_anchor_at_the_parent_covers_more_than_the_tool(shop: DependencyWorkshop) -> None:
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


def test_an_unsigned_dependency_is_refused(shop: DependencyWorkshop) -> None:
    path = shop.file("pkg/lib/new.py", signed=False)
    with pytest.raises(UnsignedError) as caught:
        shop.verified({"scope": "tool_dir"})
    assert str(caught.value) == (
        f"pkg/tool → lib/new.py is not signed: {path}; "
        f"read the file, then sign it with: rye sign {path}"
    )


def test_a_dependency_that_changed_after_it_was_verified_is_noticed(
    shop: DependencyWorkshop,
) -> None:
    before = shop.verified({"scope": "tool_dir"})
    path = shop.tools("project") / "pkg/helper.py"
    path.write_text(path.read_text() + "evil = 1\n")
    with pytest.raises(ChangedError):
        shop.verified({"scope": "tool_dir"})
    sign_item(path, shop.context)
    after = shop.verified({"scope": "tool_dir"})
    assert {name for name in after if after[name] != before[name]} == {"helper.py"}


def test_signature_and_hash_are_of_the_same_bytes(
    shop: DependencyWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is read once: a change in between cannot give other bytes the hash."""
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


def test_a_tool_cannot_switch_off_the_check_of_its_runtime(shop: DependencyWorkshop) -> None:
    found = shop.verified({"scope": "tool_dir"}, verify_deps={"enabled": False})
    assert list(found) == TREE


def test_a_tool_can_add_checks(shop: DependencyWorkshop) -> None:
    found = shop.verified({"scope": "tool_file"}, verify_deps={"scope": "tool_siblings"})
    assert list(found) == ["helper.py", "tool.py"]


def test_the_library_of_a_runtime_is_always_verified(shop: DependencyWorkshop) -> None:
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


def test_a_tool_cannot_switch_off_the_check_of_its_runtime_by_its_anchor(
    shop: DependencyWorkshop,
) -> None:
    """It could still import the files beside it, as with ``import "./helper.mjs"``."""
    for own in ({"mode": "never"}, {"enabled": False}, {"mode": "auto", "markers_any": ["none"]}):
        assert list(shop.verified({"scope": "anchor"}, ALWAYS, anchor=own)) == TREE
    shop.file("pkg/lib/new.py", signed=False)
    with pytest.raises(UnsignedError):
        shop.verified({"scope": "anchor"}, ALWAYS, anchor={"mode": "never"})


def test_a_tool_cannot_narrow_the_check_of_its_runtime_by_its_anchor(
    shop: DependencyWorkshop,
) -> None:
    wide = {"mode": "always", "root": "project_path"}
    shop.file("pkg/inner.py")
    (shop.project / "unsigned.py").write_text("x = 1\n")
    with pytest.raises(UnsignedError, match=r"pkg/tool → \S*unsigned\.py is not signed"):
        shop.verified({"exclude_dirs": ["other", "__pycache__"]}, wide, anchor={"root": "tool_dir"})


def test_a_tool_can_disable_an_anchor_that_would_be_inactive(shop: DependencyWorkshop) -> None:
    unmarked = {"mode": "auto", "markers_any": ["package.json"]}
    assert shop.verified({"scope": "anchor"}, unmarked, anchor={"mode": "never"}) == {}
    shop.file("pkg/package.json", "{}", signed=False)
    assert list(shop.verified({"scope": "anchor"}, unmarked, anchor={"mode": "never"})) == TREE


@pytest.mark.parametrize(
    "name", ["json.pyc", "helper.so", "helper.cpython-311-x86_64-linux-gnu.so", "helper.pyd",
             "evil.pth", "lib/deep/helper.node"],
)  # fmt: skip
@pytest.mark.parametrize("linked", [False, True])
def test_an_importable_file_that_cannot_be_signed_is_refused(
    shop: DependencyWorkshop, name: str, linked: bool
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


def test_the_library_of_a_runtime_cannot_be_shadowed_by_bytecode(shop: DependencyWorkshop) -> None:
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


def test_bytecode_in_pycache_is_skipped_even_if_pycache_is_searched(
    shop: DependencyWorkshop,
) -> None:
    (shop.tools("project") / "pkg/__pycache__/junk.py").unlink()
    shop.file("pkg/__pycache__/helper.cpython-311.pyc", signed=False)
    assert list(shop.verified({"scope": "tool_dir", "exclude_dirs": []})) == TREE


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
    shop: DependencyWorkshop, verify: dict[str, Any], problem: str
) -> None:
    with pytest.raises(AnchorError) as caught:
        shop.verified(verify)
    assert str(caught.value) == f"{shop.tools('system')}/run.yaml: verify_deps.{problem}"


def test_a_primitive_has_no_dependencies(shop: DependencyWorkshop) -> None:
    assert verify_dependencies([shop.primitive()], None, trusting) == {}
