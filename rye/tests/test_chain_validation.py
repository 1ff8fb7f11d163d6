"""ChainValidator on hand-made chains, also on those that the resolver would never build."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from rye.errors import ChainValidationError
from rye.executor.chain.validate import ChainValidator
from rye.executor.run.result import ExecutionResult
from rye.items.element import ANY_CHILD, ChainElement, Metadata
from rye.spaces.model import Resolution, Space, SpaceName
from rye_project import SUBPROCESS, Project


def element(
    item_id: str, space: SpaceName = "project", *, bundle: str = "", **metadata: Any
) -> ChainElement:
    place = Space(name=space, root=Path("/nowhere") / space / ".ai", bundle=bundle)
    path = place.tools / f"{item_id}.yaml"
    return ChainElement(
        item_id=item_id,
        path=path,
        space=space,
        metadata=Metadata(**metadata),
        integrity="0" * 64,
        resolution=Resolution(item_id=item_id, path=path, space=place),
    )


def issues(*chain: ChainElement) -> tuple[str, ...]:
    return ChainValidator().validate_chain(chain).issues


@pytest.mark.parametrize(
    ("child", "parents"),
    [
        ("project", ("project", "user", "system")),
        ("user", ("user", "system")),
        ("system", ("system",)),
    ],
)
def test_an_element_may_depend_on_equal_or_lower_spaces(
    child: SpaceName, parents: tuple[SpaceName, ...]
) -> None:
    for parent in parents:
        assert issues(element("tool", child), element("runtime", parent)) == ()


def test_project_runtime_cannot_serve_a_user_tool() -> None:
    assert issues(element("tool", "user"), element("runtime", "project")) == (
        (
            "'tool' of the user space depends on 'runtime' of the project space, which other "
            "projects do not have"
        ),
    )


@pytest.mark.parametrize("space", ["project", "user"])
def test_system_tool_cannot_delegate_to_something_mutable(space: SpaceName) -> None:
    assert issues(element("tool", "system"), element("runtime", space)) == (
        (
            f"'tool' of the system space delegates to 'runtime' of the {space} space, which can be "
            "changed"
        ),
    )


def test_a_mutable_element_behind_a_system_one_is_found_deep_in_the_chain() -> None:
    chain = (element("tool"), element("runtime", "system"), element("primitive", "project"))
    assert len(issues(*chain)) == 1


def test_bundles_have_the_precedence_of_the_system_space() -> None:
    tool = element("tool", "system", bundle="acme")
    assert issues(tool, element("runtime", "system", bundle="rye")) == ()


def test_missing_inputs_are_named() -> None:
    child = element("tool", outputs=("text", "json"))
    parent = element("runtime", inputs=("text", "image", "audio"))
    assert issues(child, parent) == (
        "'runtime' requires the inputs audio, image, which 'tool' does not output",
    )


def test_inputs_that_are_a_subset_of_the_outputs_fit() -> None:
    assert issues(element("a", outputs=("text", "json")), element("b", inputs=("text",))) == ()


@pytest.mark.parametrize("given", [{"outputs": ("x",)}, {}])
def test_missing_declarations_are_compatible(given: dict[str, Any]) -> None:
    assert issues(element("a", **given), element("b")) == ()
    assert issues(element("a"), element("b", inputs=("y",))) == ()


def constrained(**limits: str) -> ChainElement:
    return element("runtime", child_constraints={"tools/tool": limits})


@pytest.mark.parametrize("version", ["1.0.0", "1.5", "2.0.0"])
def test_both_limits_are_inclusive(version: str) -> None:
    parent = constrained(min_version="1.0.0", max_version="2.0.0")
    assert issues(element("tools/tool", version=version), parent) == ()


def test_versions_are_compared_as_versions_not_as_texts() -> None:
    assert issues(element("tools/tool", version="1.10.0"), constrained(min_version="1.9.0")) == ()


def test_a_version_below_the_limit() -> None:
    assert issues(element("tools/tool", version="0.9.0"), constrained(min_version="1.0.0")) == (
        "'runtime' requires 'tools/tool' 1.0.0 or later, not 0.9.0",
    )


def test_a_version_above_the_limit() -> None:
    assert issues(element("tools/tool", version="2.0.1"), constrained(max_version="2.0.0")) == (
        "'runtime' requires 'tools/tool' 2.0.0 or earlier, not 2.0.1",
    )


def test_a_constraint_for_any_child_applies() -> None:
    parent = element("runtime", child_constraints={ANY_CHILD: {"min_version": "2"}})
    assert issues(element("tools/tool", version="1.0"), parent) == (
        "'runtime' requires 'tools/tool' 2 or later, not 1.0",
    )


def test_constraints_without_an_item_id_apply_to_any_child(tmp_path: Path) -> None:
    """The literal form of the specification."""
    project = Project(tmp_path)
    limits = {"min_version": "1.0.0", "max_version": "2.0.0"}
    project.yaml(
        "runtimes/true",
        executor_id=SUBPROCESS,
        config={"command": "/bin/true"},
        child_constraints=limits,
    )
    project.yaml("tools/old", executor_id="runtimes/true", version="0.9.0")
    project.yaml("tools/fits", executor_id="runtimes/true", version="2.0.0")
    assert project.run("tools/old").metadata["issues"] == [
        "'runtimes/true' requires 'tools/old' 1.0.0 or later, not 0.9.0"
    ]
    assert project.run("tools/fits").success


def test_a_constraint_by_short_id_applies() -> None:
    parent = element("runtime", child_constraints={"tool": {"min_version": "2"}})
    assert len(issues(element("tools/tool", version="1.0"), parent)) == 1


def test_a_constraint_on_another_item_does_not_apply() -> None:
    parent = element("runtime", child_constraints={"tools/other": {"min_version": "2"}})
    assert issues(element("tools/tool", version="1.0"), parent) == ()


def test_versions_that_cannot_be_compared_are_issues_not_passes() -> None:
    assert issues(element("tools/tool", version="latest"), constrained(min_version="1")) == (
        (
            "'tools/tool' has the version 'latest', which cannot be compared with the constraints "
            "of 'runtime'"
        ),
    )
    assert issues(element("tools/tool", version="1.0"), constrained(min_version="new")) == (
        "min_version 'new' in the constraints of 'runtime' is not a version",
    )


def test_all_issues_are_reported_at_once_and_in_the_error() -> None:
    tool = element("tools/tool", "user", outputs=("text",), version="0.1")
    runtime = element(
        "runtime",
        "project",
        inputs=("image",),
        child_constraints={"tools/tool": {"min_version": "1.0"}},
    )
    with pytest.raises(ChainValidationError) as caught:
        ChainValidator().require_valid((tool, runtime))
    assert len(caught.value.issues) == 3
    assert str(caught.value) == (
        "the chain of 'tools/tool' does not fit together: "
        "'tools/tool' of the user space depends on 'runtime' of the project space, which other "
        "projects do not have; "
        "'runtime' requires the inputs image, which 'tools/tool' does not output; "
        "'runtime' requires 'tools/tool' 1.0 or later, not 0.1; "
        "correct /nowhere/user/.ai/tools/tools/tool.yaml or "
        "/nowhere/project/.ai/tools/runtime.yaml"
    )


def test_only_the_files_of_elements_that_do_not_fit_are_named() -> None:
    tool, inner = element("tool"), element("inner", outputs=("text",))
    primitive = element("primitive", "system", inputs=("image",))
    with pytest.raises(ChainValidationError) as caught:
        ChainValidator().require_valid((tool, inner, primitive))
    assert caught.value.hint == f"correct {inner.path} or {primitive.path}"


def test_a_warm_executor_validates_a_changed_chain_again(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    fields: dict[str, Any] = {"executor_id": SUBPROCESS, "config": {"command": "/bin/true"}}
    project.yaml("tools/tool", executor_id="runtimes/plain")
    project.yaml("runtimes/plain", **fields)

    async def call() -> list[ExecutionResult]:
        async with project.executor() as executor:
            results = [await executor.execute("tools/tool", use_lockfile=False) for _ in range(2)]
            project.yaml(
                "runtimes/plain", child_constraints={"tool": {"min_version": "2.0"}}, **fields
            )
            return [*results, await executor.execute("tools/tool", use_lockfile=False)]

    *valid, changed = asyncio.run(call())
    assert [result.error for result in valid] == [None, None]
    assert changed.metadata["error_type"] == "ChainValidationError"
    tools = project.folder("project") / "tools"
    assert changed.error == (
        "the chain of 'tools/tool' does not fit together: 'runtimes/plain' requires 'tools/tool' "
        "2.0 or later, not 1.0.0; "
        f"correct {tools}/tools/tool.yaml or {tools}/runtimes/plain.yaml"
    )
