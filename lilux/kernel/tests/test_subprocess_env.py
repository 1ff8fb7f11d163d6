"""The environment of a job is the one that its caller passed with this call."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping

import pytest
from lilux.primitives.subprocess.request import effective_env
from process_transports import Execute

PRINT_A = {"command": "/bin/sh", "args": ["-c", 'printf %s "$A"'], "render": False}


def test_consecutive_jobs_have_their_own_environments(execute: Execute) -> None:
    environments = [{"A": "1"}, {"A": "2"}, {"A": "1"}, {}, {"A": "2", "B": "3"}]
    configs = [{**PRINT_A, "env": env, "env_mode": "exact"} for env in environments]
    assert [execute(config).stdout for config in configs] == ["1", "2", "1", "", "2"]


def test_a_dict_that_the_caller_changed_between_calls_is_read_again(execute: Execute) -> None:
    env = {"A": "before"}
    config = {**PRINT_A, "env": env, "env_mode": "exact"}
    assert execute(config).stdout == "before"
    env["A"] = "after"
    assert execute(config).stdout == "after"


def test_a_returned_environment_is_a_copy() -> None:
    env = {"A": "1"}
    first = effective_env(env, "exact")
    env["A"] = "2"
    assert first == {"A": "1"}


def test_a_change_of_our_own_environment_reaches_the_next_job(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    def printed() -> str:
        return execute(PRINT_A).stdout

    monkeypatch.setenv("A", "1")
    assert printed() == "1"
    monkeypatch.setenv("A", "2")
    assert printed() == "2"
    os.environb[b"A"] = b"3"
    assert printed() == "3"
    monkeypatch.delenv("A")
    assert printed() == ""
    monkeypatch.setattr(os, "environ", {"A": "4"})
    assert printed() == "4"


def test_given_variables_never_stay_in_the_environment_of_a_later_job(execute: Execute) -> None:
    assert execute({**PRINT_A, "env": {"A": "given"}}).stdout == "given"
    assert execute(PRINT_A).stdout == ""


def test_a_value_that_is_not_a_string_is_refused_after_an_equal_environment() -> None:
    effective_env({"A": "1"}, "exact")
    with pytest.raises(ValueError, match=r"env\['A'\] must be a string, got int"):
        effective_env({"A": 1}, "exact")


class Watched(Mapping[str, str]):
    """A mapping that calls a function whenever it is read."""

    def __init__(self, values: dict[str, str], when_read: Callable[[], object]) -> None:
        self._values = values
        self._when_read = when_read

    def __getitem__(self, name: str) -> str:
        self._when_read()
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        self._when_read()
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        equal = self._values == other
        self._when_read()
        return equal

    __hash__ = None  # type: ignore[assignment] # as for any mapping that compares by value


def test_two_threads_never_get_the_environment_of_each_other() -> None:
    def call_in_another_thread() -> None:
        other = threading.Thread(target=effective_env, args=({"A": "theirs"}, "exact"))
        other.start()
        other.join()

    env = Watched({"A": "mine"}, call_in_another_thread)
    for _ in range(3):
        effective_env({"A": "mine"}, "exact")
        assert effective_env(env, "exact") == {"A": "mine"}
