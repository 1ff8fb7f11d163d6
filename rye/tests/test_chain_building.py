"""From an id to a chain of verified elements."""

import asyncio
from pathlib import Path

import pytest
from rye.errors import (
    ChainCycleError,
    ChainDepthError,
    ChangedError,
    ItemFormatError,
    ItemNotFoundError,
    MissingExecutorError,
    RyeError,
    UnknownPrimitiveError,
    UnsignedError,
)
from rye.executor.chain.build import Chain
from rye_project import SUBPROCESS, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def build(project: Project, item_id: str) -> Chain:
    async def call() -> Chain:
        async with project.executor() as executor:
            return executor._build_chain(item_id)

    return asyncio.run(call())


def refusal(project: Project, item_id: str, kind: type[RyeError]) -> str:
    with pytest.raises(kind) as caught:
        build(project, item_id)
    assert type(caught.value) is kind
    return str(caught.value)


def ladder(project: Project, elements: int) -> None:
    """A chain of that many elements, the primitive included."""
    for step in range(elements - 2):
        project.yaml(f"steps/s{step}", executor_id=f"steps/s{step + 1}")
    project.yaml(f"steps/s{elements - 2}", executor_id=SUBPROCESS)


def test_a_chain_is_ordered_from_the_tool_to_the_primitive(project: Project) -> None:
    tool = project.yaml("tools/hello", executor_id="runtimes/plain", version="2.1.0")
    project.yaml("runtimes/plain", executor_id=SUBPROCESS, space="user")
    chain = build(project, "tools/hello")
    assert [element.item_id for element in chain] == ["tools/hello", "runtimes/plain", SUBPROCESS]
    assert [element.space for element in chain] == ["project", "user", "system"]
    assert [element.version for element in chain] == ["2.1.0", "1.0.0", "0.0.0"]
    assert chain[0].path == tool
    assert chain[0].integrity != chain[1].integrity
    assert chain[0].signer == chain[1].signer != ""


def test_a_primitive_needs_no_file(project: Project) -> None:
    (primitive,) = build(project, SUBPROCESS)
    assert (primitive.path, primitive.integrity, primitive.signer) == (None, "", "")
    assert primitive.executor_id is None


def test_a_primitive_file_in_the_system_space_adds_its_schema(project: Project) -> None:
    project.yaml(
        SUBPROCESS,
        space="system",
        executor_id=None,
        tool_type="primitive",
        config_schema={"type": "object", "required": ["command"]},
    )
    (primitive,) = build(project, SUBPROCESS)
    assert primitive.metadata.config_schema == {"type": "object", "required": ["command"]}


@pytest.mark.parametrize("space", ["project", "user"])
def test_a_project_or_user_file_cannot_replace_a_primitive(project: Project, space: str) -> None:
    project.yaml(SUBPROCESS, space=space, executor_id="evil/runtime")  # type: ignore[arg-type] # a parameter of this test
    project.yaml("hello", executor_id=SUBPROCESS)
    chain = build(project, "hello")
    assert [element.path is None for element in chain] == [False, True]


def test_short_executor_ids_are_found_by_their_stem(project: Project) -> None:
    project.yaml("tools/hello", executor_id="plain_runtime")
    project.yaml(
        "rye/core/runtimes/plain_runtime",
        tool_type="runtime",
        executor_id="subprocess",
        space="system",
    )
    assert [element.item_id for element in build(project, "hello")] == [
        "tools/hello",
        "rye/core/runtimes/plain_runtime",
        SUBPROCESS,
    ]


@pytest.mark.parametrize("place", ["python", "kit/python"])
@pytest.mark.parametrize("kind", ["python", ""])
def test_a_short_executor_id_never_leads_to_a_tool(project: Project, place: str, kind: str) -> None:
    """A checkout cannot become the executor of a tool with a file of the right name."""
    child = project.yaml("tools/hello", executor_id="python")
    tool = project.command(place, "/bin/echo", "evil", tool_type=kind)
    assert refusal(project, "tools/hello", MissingExecutorError) == (
        f"the short executor id 'python' of 'tools/hello' ({child}) leads to '{place}' ({tool}), "
        f"which is not a runtime or a primitive (its tool_type is '{kind}'); write the full id of "
        "the executor, or declare tool_type: runtime in that file"
    )


def test_a_full_executor_id_may_lead_to_any_item(project: Project) -> None:
    project.yaml("tools/hello", executor_id="kit/python")
    project.command("kit/python", "/bin/echo", tool_type="python")
    assert len(build(project, "tools/hello")) == 3


def test_ten_elements_pass(project: Project) -> None:
    ladder(project, 10)
    assert len(build(project, "steps/s0")) == 10


def test_eleven_elements_do_not_pass(project: Project) -> None:
    ladder(project, 11)
    path = " → ".join(f"steps/s{step}" for step in range(10))
    file = project.folder("project") / "tools" / "steps" / "s0.yaml"
    assert refusal(project, "steps/s0", ChainDepthError) == (
        f"the chain of 'steps/s0' ({file}) has more than 10 elements ({path} → {SUBPROCESS}); "
        "let one of them name an executor that is nearer to a primitive"
    )


def test_a_cycle_is_reported_from_its_first_element(project: Project) -> None:
    project.yaml("tools/start", executor_id="loop/a")
    project.yaml("loop/a", executor_id="loop/b")
    last = project.yaml("loop/b", executor_id="loop/a")
    assert refusal(project, "tools/start", ChainCycleError) == (
        "the chain of 'tools/start' is circular (loop/a → loop/b → loop/a); "
        f"correct the executor id of 'loop/b' ({last})"
    )


def test_an_item_cannot_be_its_own_executor(project: Project) -> None:
    project.yaml("tools/self", executor_id="tools/self")
    assert "(tools/self → tools/self)" in refusal(project, "tools/self", ChainCycleError)


def test_a_missing_executor_is_a_value_error_that_names_the_child(project: Project) -> None:
    tool = project.yaml("tools/hello", executor_id="runtimes/nowhere")
    message = refusal(project, "tools/hello", MissingExecutorError)
    assert issubclass(MissingExecutorError, ValueError)
    assert message == (
        "executor 'runtimes/nowhere' not found in accessible spaces for "
        f"'tools/hello' ({tool}); create it, or correct the executor id"
    )


def test_a_misspelt_executor_gets_a_suggestion(project: Project) -> None:
    project.yaml("tools/hello", executor_id="runtimes/plian")
    project.yaml("runtimes/plain", executor_id=SUBPROCESS)
    message = refusal(project, "tools/hello", MissingExecutorError)
    assert message.endswith("did you mean 'runtimes/plain'? create it, or correct the executor id")


def test_a_user_tool_cannot_reach_a_runtime_of_the_project(project: Project) -> None:
    tool = project.yaml("tools/mine", executor_id="runtimes/theirs", space="user")
    runtime = project.yaml("runtimes/theirs", executor_id=SUBPROCESS)
    assert refusal(project, "tools/mine", MissingExecutorError) == (
        "executor 'runtimes/theirs' not found in accessible spaces for "
        f"'tools/mine' ({tool}); {runtime} has that id, but the user space cannot depend on the "
        "project space; copy it to the user space, or move the tool to the project space"
    )


def test_a_system_tool_uses_the_system_runtime_even_if_the_project_has_one(
    project: Project,
) -> None:
    project.yaml("tools/shipped", executor_id="runtimes/plain", space="system")
    shipped = project.yaml("runtimes/plain", executor_id=SUBPROCESS, space="system")
    project.yaml("runtimes/plain", executor_id="evil/runtime")
    assert build(project, "tools/shipped")[1].path == shipped


def test_an_executor_id_outside_of_the_space_is_a_format_error(project: Project) -> None:
    tool = project.yaml("tools/hello", executor_id="../../etc/passwd")
    message = refusal(project, "tools/hello", ItemFormatError)
    assert message.startswith(f"{tool}:4: expected an item id in 'executor_id'")


def test_a_file_without_executor_must_be_an_installed_primitive(project: Project) -> None:
    tool = project.yaml("tools/hello", executor_id=None)
    assert refusal(project, "tools/hello", UnknownPrimitiveError) == (
        f"'tools/hello' ({tool}) has no executor, and no primitive with that id is installed; "
        "set its executor id to a runtime or a primitive"
    )


def test_a_file_that_does_not_mention_an_executor_is_refused(project: Project) -> None:
    tool = project.tool("tools/hello.py", '__version__ = "1"\nCONFIG = {"command": "x"}\n')
    assert refusal(project, "tools/hello", ItemFormatError).startswith(f"{tool}")


def test_every_element_must_be_signed_not_only_the_tool(project: Project) -> None:
    project.yaml("tools/hello", executor_id="runtimes/plain")
    project.tool("runtimes/plain.yaml", f'version: "1"\nexecutor_id: {SUBPROCESS}\n', signed=False)
    assert refusal(project, "tools/hello", UnsignedError).startswith("runtimes/plain is not signed")


def test_a_changed_file_is_not_even_parsed(project: Project) -> None:
    tool = project.yaml("tools/hello", executor_id=SUBPROCESS)
    tool.write_text(tool.read_text() + "{ not yaml")
    assert refusal(project, "tools/hello", ChangedError).startswith("tools/hello was changed")


def test_an_unknown_tool_is_reported_with_the_nearest_names(project: Project) -> None:
    project.yaml("tools/hello", executor_id=SUBPROCESS)
    with pytest.raises(ItemNotFoundError) as caught:
        build(project, "tools/helo")
    assert caught.value.nearest == ("tools/hello",)
