"""The environment of a job is what its caller gave this time, however often it was the same."""

import asyncio
from collections.abc import Sequence

from lilux.primitives.subprocess import SubprocessPrimitive
from lilux.primitives.subprocess.request import effective_env
from lilux.primitives.subprocess.wire import encode

PRINT_A = {"command": "/bin/sh", "args": ["-c", 'printf %s "$A"'], "render": False}


def seen(environments: Sequence[dict[str, str]]) -> list[str]:
    async def body() -> list[str]:
        run = SubprocessPrimitive().execute
        configs = [{**PRINT_A, "env": env, "env_mode": "exact"} for env in environments]
        return [(await run(config)).stdout for config in configs]

    return asyncio.run(body())


def test_jobs_in_turns_have_their_own_environments() -> None:
    assert seen([{"A": "1"}, {"A": "2"}, {"A": "1"}, {}, {"A": "2", "B": "3"}]) == [
        "1", "2", "1", "", "2",
    ]  # fmt: skip


def test_a_dict_that_its_caller_changed_in_the_meantime_is_read_anew() -> None:
    env = {"A": "before"}
    config = {**PRINT_A, "env": env, "env_mode": "exact"}

    async def body() -> list[str]:
        primitive = SubprocessPrimitive()
        first = await primitive.execute(config)
        env["A"] = "after"
        return [first.stdout, (await primitive.execute(config)).stdout]

    assert asyncio.run(body()) == ["before", "after"]


def test_what_a_caller_does_to_its_dict_does_not_reach_what_is_remembered() -> None:
    env = {"A": "1"}
    first = effective_env(env, "exact")
    env["A"] = "2"
    assert effective_env({"A": "1"}, "exact") == {"A": "1"}
    assert first == {"A": "1"}


def test_an_equal_environment_is_spelled_once() -> None:
    first = effective_env({"A": "1", "B": "2"}, "exact")
    assert effective_env({"B": "2", "A": "1"}, "exact") is first
    frame = encode({"id": 1, "op": "exec", "env": first})
    assert frame.endswith(b'{"id":1,"op":"exec","env":{"A":"1","B":"2"}}')
    assert encode({"id": 1, "op": "exec", "env": first}) == frame
