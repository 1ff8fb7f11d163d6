"""One builder that builds the config of a chain again and again."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rye.errors import ArgumentTooLongError
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.config.build import ConfigBuilder, ExecutionConfig, build_execution_config
from rye.executor.config.environment import ChainEnvironment
from rye.items.element import ChainElement
from rye_elements import Workshop

ENV = ChainEnvironment(env={"PATH": "/bin", "TOKEN": "one"}, declared=frozenset())


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


class Builder:
    """A builder whose every config is compared with one that is built without it."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._builder = ConfigBuilder(workshop.context)

    def build(
        self,
        chain: Sequence[ChainElement],
        parameters: Mapping[str, Any] | None = None,
        env: ChainEnvironment = ENV,
        timeout: float | None = None,
    ) -> ExecutionConfig:
        context = self._workshop.context
        anchor = resolve_anchor(chain, context)
        given = parameters or {}
        built = self._builder.build(chain, given, env, anchor, timeout=timeout)
        assert built == build_execution_config(chain, given, env, anchor, context, timeout=timeout)
        return built


def chain_of(workshop: Workshop, **config: Any) -> tuple[ChainElement, ...]:
    return (workshop.element("tool.yaml", config=config), workshop.primitive())


def test_two_threads_get_the_configs_of_their_own_calls(workshop: Workshop) -> None:
    builder = ConfigBuilder(workshop.context)
    chains = [chain_of(workshop, command="/bin/echo", args=["{word}", tag]) for tag in "ab"]

    def build_often(number: int) -> list[list[str]]:
        env = ChainEnvironment(env={"N": str(number)}, declared=frozenset())
        word = {"word": f"{number}"}
        built = [builder.build(chains[turn % 2], word, env, None) for turn in range(500)]
        assert {one.config["env"]["N"] for one in built} == {str(number)}
        return [one.config["args"] for one in built]

    with ThreadPoolExecutor(4) as threads:
        for number, results in enumerate(threads.map(build_often, range(4))):
            assert results == [[str(number), "ab"[turn % 2]] for turn in range(500)]


def test_another_environment_gives_another_config(workshop: Workshop) -> None:
    chain = chain_of(workshop, command="/bin/echo")
    builder = Builder(workshop)
    builder.build(chain)
    other = ChainEnvironment(env={"TOKEN": "two"}, declared=frozenset())
    assert builder.build(chain, env=other).config["env"] == {"TOKEN": "two"}
    assert builder.build(chain).config["env"] == ENV.env


def test_the_timeout_of_a_call_does_not_affect_the_next_call(workshop: Workshop) -> None:
    chain = chain_of(workshop, command="/bin/echo", timeout=9)
    builder = Builder(workshop)
    assert [builder.build(chain, timeout=each).config["timeout"] for each in (None, 2, None)] == [
        9,
        2,
        9,
    ]


@pytest.mark.parametrize("template", ["{word}", "{params_json}", ["{word}"], {"deep": "{word}"}])
def test_the_parameters_of_a_call_do_not_affect_the_next_call(
    workshop: Workshop, template: Any
) -> None:
    chain = chain_of(workshop, command="/bin/cat", input_data=template)
    builder = Builder(workshop)
    said = [builder.build(chain, {"word": each}).config["input_data"] for each in ("a", "b", "a")]
    assert said[0] == said[2] != said[1]


def test_a_variable_in_a_template_gets_the_value_of_the_current_environment(
    workshop: Workshop,
) -> None:
    chain = chain_of(workshop, command="/bin/echo", args=["${TOKEN}"])
    builder = Builder(workshop)
    assert builder.build(chain).config["args"] == ["one"]
    other = ChainEnvironment(env={"TOKEN": "two"}, declared=frozenset())
    assert builder.build(chain, env=other).config["args"] == ["two"]


def test_an_authors_value_is_rendered_for_each_call(
    workshop: Workshop,
) -> None:
    chain = chain_of(workshop, command="/bin/echo", args=["{greeting}"], greeting="hello")
    builder = Builder(workshop)
    assert builder.build(chain).config["args"] == ["hello"]
    assert builder.build(chain, {"cwd": "/"}).config["args"] == ["hello"]


def test_the_chain_of_a_changed_tool_is_merged_again(workshop: Workshop) -> None:
    builder = Builder(workshop)
    for word in ("one", "two"):
        chain = chain_of(workshop, command="/bin/echo", args=[word])
        assert builder.build(chain).config["args"] == [word]


def test_parameters_of_a_primitive_called_directly_are_not_kept(workshop: Workshop) -> None:
    chain = (workshop.primitive(),)
    builder = Builder(workshop)
    for command in ("/bin/true", "/bin/false"):
        assert builder.build(chain, {"command": command}).config["command"] == command


def test_an_anchor_is_resolved_for_each_call(workshop: Workshop) -> None:
    tool = workshop.element("kit/tool.py", config={"command": "/bin/echo"})
    anchor = {"mode": "auto", "markers_any": ["here"], "cwd": "{anchor_path}"}
    chain = (tool, workshop.element("run.yaml", anchor=anchor), workshop.primitive())
    builder = Builder(workshop)
    folder = workshop.tools("project") / "kit"
    assert builder.build(chain).config["cwd"] != str(folder)
    (folder / "here").touch()
    assert builder.build(chain).config["cwd"] == str(folder)


def test_a_variable_that_is_too_long_in_a_later_environment_is_refused(workshop: Workshop) -> None:
    chain = chain_of(workshop, command="/bin/echo")
    builder = ConfigBuilder(workshop.context)
    builder.build(chain, {}, ENV, None)
    large = ChainEnvironment(env={"BIG": "x" * 200_000}, declared=frozenset())
    with pytest.raises(ArgumentTooLongError) as caught:
        builder.build(chain, {}, large, None)
    assert str(caught.value) == (
        f"{chain[0].path}: 'tool': the variable BIG takes 200000 bytes; this system allows 131067; "
        "put the value into a file, or send it on stdin"
    )
