"""Anchors: when they are active, where they point, and which links are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rye.errors import AnchorError
from rye.executor.chain.anchor import Anchor, apply_anchor, resolve_anchor, runtime_lib
from rye.executor.config.build import build_execution_config
from rye.items.element import ChainElement
from rye_elements import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def chain(
    workshop: Workshop, anchor: Any, name: str = "pkg/sub/tool.py", **runtime: Any
) -> list[ChainElement]:
    return [
        workshop.element(name),
        workshop.element("lang/run.yaml", space="system", anchor=anchor, **runtime),
        workshop.primitive(),
    ]


def resolved(workshop: Workshop, anchor: Any, name: str = "pkg/sub/tool.py") -> Anchor | None:
    return resolve_anchor(chain(workshop, anchor, name), workshop.context)


def active(workshop: Workshop, anchor: Any) -> Anchor:
    found = resolved(workshop, anchor)
    assert found is not None
    return found


def refused(workshop: Workshop, anchor: Any, name: str = "pkg/sub/tool.py") -> str:
    with pytest.raises(AnchorError) as caught:
        resolved(workshop, anchor, name)
    return str(caught.value)


def runtime_file(workshop: Workshop) -> Path:
    return workshop.tools("system") / "lang/run.yaml"


def test_without_a_declaration_there_is_no_anchor(workshop: Workshop) -> None:
    assert resolved(workshop, None) is None
    assert resolve_anchor([workshop.primitive()], workshop.context) is None


def test_mode_auto_requires_a_marker_in_the_folder_of_the_tool(workshop: Workshop) -> None:
    spec = {"markers_any": ["__init__.py", "pyproject.toml"]}
    assert resolved(workshop, spec) is None
    folder = workshop.tools("project") / "pkg/sub"
    (folder.parent / "pyproject.toml").write_text("")
    assert resolved(workshop, spec) is None
    (folder / "pyproject.toml").write_text("")
    assert active(workshop, spec).path == folder
    assert active(workshop, {"mode": "auto", **spec}).path == folder


@pytest.mark.parametrize(
    ("spec", "is_active"),
    [
        ({"mode": "always"}, True),
        ({"mode": "never", "markers_any": ["tool.py"]}, False),
        ({"mode": "always", "enabled": True}, True),
        ({"mode": "always", "enabled": False}, False),
        ({"mode": "auto", "markers_any": ["tool.py"]}, True),
    ],
)
def test_mode_and_enabled(workshop: Workshop, spec: dict[str, Any], is_active: bool) -> None:
    assert (resolved(workshop, spec) is not None) is is_active


@pytest.mark.parametrize(
    ("root", "below"),
    [
        (None, "project/.ai/tools/pkg/sub"),
        ("tool_dir", "project/.ai/tools/pkg/sub"),
        ("tool_parent", "project/.ai/tools/pkg"),
        ("project_path", "project"),
    ],
)
def test_roots(workshop: Workshop, root: str | None, below: str) -> None:
    spec = {"mode": "always"} | ({"root": root} if root else {})
    assert active(workshop, spec).path == workshop.root / below


def test_the_parent_of_a_tool_at_the_top_is_outside(workshop: Workshop) -> None:
    tools = workshop.tools("project")
    assert refused(workshop, {"mode": "always", "root": "tool_parent"}, "tool.py") == (
        f"{runtime_file(workshop)}: anchor.root: the tool_parent of 'tool' is {tools.parent}, "
        f"outside of {tools}; move the tool to a separate folder"
    )


def test_a_tool_changes_single_keys_of_its_runtime(workshop: Workshop) -> None:
    (workshop.tools("system") / "lang/lib").mkdir(parents=True)
    runtime = workshop.element(
        "lang/run.yaml", space="system", anchor={"mode": "never", "lib": "lib", "root": "tool_dir"}
    )
    tool = workshop.element("pkg/sub/tool.py", anchor={"mode": "always", "root": "tool_parent"})
    found = resolve_anchor([tool, runtime, workshop.primitive()], workshop.context)
    assert found is not None
    assert found.path == workshop.tools("project") / "pkg"
    assert found.lib == workshop.tools("system") / "lang/lib"


def test_paths_are_prepended_and_appended(workshop: Workshop) -> None:
    lib = workshop.tools("system") / "lang/lib/python"
    lib.mkdir(parents=True)
    spec = {
        "mode": "always",
        "lib": "lib/python",
        "env_paths": {
            "PYTHONPATH": {
                "prepend": ["{anchor_path}", "{runtime_lib}"],
                "append": ["{project_path}/src", "vendor", "${EXTRA}"],
            },
            "EMPTY": {"append": ["{tool_dir}"]},
            "UNSET": {"prepend": ["{tool_parent}"]},
        },
    }
    before = {"PYTHONPATH": "/there:/too", "EMPTY": "", "EXTRA": "/extra", "KEPT": "1"}
    env = apply_anchor(before, active(workshop, spec))
    root = workshop.tools("project") / "pkg/sub"
    assert env == {
        "PYTHONPATH": f"{root}:{lib}:/there:/too:{workshop.project}/src:{root}/vendor:/extra",
        "EMPTY": str(root),
        "UNSET": str(root.parent),
        "EXTRA": "/extra",
        "KEPT": "1",
    }
    assert before["EMPTY"] == ""
    assert apply_anchor(before, None) == before


def test_a_path_with_a_separator_is_refused(tmp_path: Path) -> None:
    """A folder named ``x:/tmp/evil`` must not add ``/tmp/evil`` to the module path."""
    workshop = Workshop(tmp_path / "x:evil")
    spec = {"mode": "always", "env_paths": {"PYTHONPATH": {"prepend": ["{anchor_path}"]}}}
    anchor = active(workshop, spec)
    with pytest.raises(AnchorError) as caught:
        apply_anchor({}, anchor)
    assert str(caught.value) == (
        f"{anchor.declared_in}: anchor.env_paths.PYTHONPATH: the path {str(anchor.path)!r} "
        "contains ':', which separates paths; move the folder to a path without it"
    )


def test_an_empty_path_is_refused(workshop: Workshop) -> None:
    """An empty entry would mean the current directory."""
    spec = {"mode": "always", "env_paths": {"P": {"append": ["${UNSET}"]}}}
    anchor = active(workshop, spec)
    with pytest.raises(AnchorError) as caught:
        apply_anchor({}, anchor)
    assert anchor.declared_in.endswith(".yaml")
    assert str(caught.value) == (
        f"{anchor.declared_in}: anchor.env_paths.P: a path is empty; name a folder"
    )


def test_an_unknown_name_is_refused(workshop: Workshop) -> None:
    spec = {"mode": "always", "env_paths": {"P": {"append": ["{runtime_lib}"]}}}
    anchor = active(workshop, spec)
    with pytest.raises(AnchorError) as caught:
        apply_anchor({}, anchor)
    assert str(caught.value) == (
        f"{anchor.declared_in}: anchor.env_paths.P: unknown name 'runtime_lib'; "
        "use one of anchor_path, project_path, source_dir, system_space, tool_dir, tool_parent, "
        "tool_path, user_space"
    )


def test_the_cwd_of_an_anchor_overrides_the_runtime_and_not_the_tool(workshop: Workshop) -> None:
    spec = {"mode": "always", "cwd": "{anchor_path}/data"}
    config = {"command": "x", "cwd": "/runtime"}

    def cwd(elements: list[ChainElement]) -> str:
        anchor = resolve_anchor(elements, workshop.context)
        built = build_execution_config(elements, {}, {}, anchor, workshop.context)
        return str(built.config["cwd"])

    elements = chain(workshop, spec, config=config)
    assert cwd(elements) == str(workshop.tools("project") / "pkg/sub/data")
    own = workshop.element("pkg/sub/tool.py", config={"cwd": "/tool"})
    assert cwd([own, *elements[1:]]) == "/tool"
    assert cwd(chain(workshop, {**spec, "mode": "never"}, config=config)) == "/runtime"


def test_a_folder_of_an_anchor_is_never_a_template(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "{v}${HOME}")
    elements = chain(workshop, {"mode": "always", "cwd": "sub"}, config={"command": "x"})
    anchor = resolve_anchor(elements, workshop.context)
    built = build_execution_config(elements, {"v": "evil"}, {"HOME": "x"}, anchor, workshop.context)
    assert built.config["cwd"] == str(workshop.tools("project") / "pkg/sub/sub")


def test_a_library_is_known_even_if_the_anchor_is_not_active(workshop: Workshop) -> None:
    lib = workshop.tools("system") / "lang/lib"
    lib.mkdir(parents=True)
    elements = chain(workshop, {"mode": "never", "lib": "lib"})
    assert resolve_anchor(elements, workshop.context) is None
    assert runtime_lib(elements) == lib


@pytest.mark.parametrize("lib", ["/usr/lib", "../lib", "lib/../../x", "lib\0"])
def test_a_library_is_a_plain_path_below_its_runtime(workshop: Workshop, lib: str) -> None:
    assert refused(workshop, {"mode": "always", "lib": lib}) == (
        f"{runtime_file(workshop)}: anchor.lib: {lib!r} is not a path inside the folder; "
        "write a plain relative path"
    )


def test_a_missing_library_is_refused(workshop: Workshop) -> None:
    path = workshop.tools("system") / "lang/lib"
    assert refused(workshop, {"mode": "always", "lib": "lib"}) == (
        f"{runtime_file(workshop)}: anchor.lib: {path} is not a folder; create it"
    )


def test_a_library_linked_out_of_the_space_is_refused(workshop: Workshop) -> None:
    (workshop.root / "elsewhere").mkdir()
    runtime_file(workshop).parent.mkdir(parents=True)
    (runtime_file(workshop).parent / "lib").symlink_to(workshop.root / "elsewhere")
    assert refused(workshop, {"mode": "always", "lib": "lib"}) == (
        f"{runtime_file(workshop)}: anchor.lib: lib leads out of {workshop.tools('system')}; "
        "keep it inside"
    )


def test_a_marker_linked_from_elsewhere_is_refused(workshop: Workshop) -> None:
    outside = workshop.root / "outside.py"
    outside.write_text("")
    marker = workshop.tools("project") / "pkg/sub/__init__.py"
    marker.parent.mkdir(parents=True)
    marker.symlink_to(outside)
    assert refused(workshop, {"markers_any": ["__init__.py"]}) == (
        f"{runtime_file(workshop)}: anchor.markers_any: a symbolic link leads {marker} out of its "
        "folder; put the file itself there"
    )
    marker.unlink()
    marker.symlink_to("tool.py")
    assert resolved(workshop, {"markers_any": ["__init__.py"]}) is not None
    marker.unlink()
    marker.symlink_to("missing.py")
    assert resolved(workshop, {"markers_any": ["__init__.py"]}) is None


def test_a_root_linked_out_of_the_space_is_refused(workshop: Workshop) -> None:
    outside = workshop.root / "outside"
    outside.mkdir()
    (workshop.tools("project") / "pkg").symlink_to(outside)
    assert refused(workshop, {"mode": "always"}, "pkg/tool.py") == (
        f"{runtime_file(workshop)}: anchor.root: the tool_dir of 'pkg/tool' is {outside}, outside "
        f"of {workshop.tools('project')}; move the tool to a separate folder"
    )


@pytest.mark.parametrize("where", ["{anchor_path}/vendor", "vendor", "{anchor_path}/vendor/deep"])
def test_a_path_linked_out_of_the_anchor_is_refused(workshop: Workshop, where: str) -> None:
    outside = workshop.root / "outside"
    (outside / "deep").mkdir(parents=True)
    spec = {"mode": "always", "env_paths": {"P": {"append": [where]}}}
    anchor = active(workshop, spec)
    (anchor.path / "vendor").symlink_to(outside)
    path = anchor.path / where.removeprefix("{anchor_path}/")
    with pytest.raises(AnchorError) as caught:
        apply_anchor({}, anchor)
    assert str(caught.value) == (
        f"{anchor.declared_in}: anchor.env_paths.P: a symbolic link leads {path} out of "
        f"{anchor.path}; put the folder itself there"
    )


def test_a_cwd_linked_out_of_the_anchor_is_refused(workshop: Workshop) -> None:
    root = workshop.tools("project") / "pkg/sub"
    root.mkdir(parents=True)
    (root / "data").symlink_to("/")
    assert refused(workshop, {"mode": "always", "cwd": "data"}) == (
        f"{runtime_file(workshop)}: anchor.cwd: a symbolic link leads {root}/data out of {root}; "
        "name another folder"
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"mod": "auto"},
            ("mod: unknown key; use one of enabled, mode, markers_any, root, lib, cwd, env_paths"),
        ),
        ({"mode": "maybe"}, "mode: expected one of auto, always, never; choose one of them"),
        (
            {"mode": "always", "root": "/"},
            "root: expected one of tool_dir, tool_parent, project_path; choose one of them",
        ),
        ({"enabled": "yes"}, "enabled: expected true or false, got str; correct it"),
        (
            {"mode": "auto"},
            "markers_any: mode auto needs a marker to look for; name one, or write mode: always",
        ),
        ({"markers_any": "x"}, "markers_any: expected a list of texts; correct it"),
        (
            {"markers_any": ["../x"]},
            "markers_any: '../x' is not a path inside the folder; write a plain relative path",
        ),
        ({"mode": "always", "lib": 3}, "lib: expected a text, got int; correct it"),
        ({"mode": "always", "cwd": ""}, "cwd: expected a text, got an empty text; correct it"),
        (
            {"mode": "always", "env_paths": []},
            "env_paths: expected a mapping with names; correct it",
        ),
        (
            {"mode": "always", "env_paths": {"A=": {}}},
            "env_paths: 'A=' cannot be the name of a variable; rename it",
        ),
        (
            {"mode": "always", "env_paths": {"A": "x"}},
            "env_paths.A: expected a mapping, got str; correct it",
        ),
        (
            {"mode": "always", "env_paths": {"A": {"before": []}}},
            "env_paths.A.before: unknown key; use one of prepend, append",
        ),
    ],
)
def test_a_malformed_declaration_names_file_and_key(
    workshop: Workshop, spec: dict[str, Any], problem: str
) -> None:
    assert refused(workshop, spec) == f"{runtime_file(workshop)}: anchor.{problem}"
