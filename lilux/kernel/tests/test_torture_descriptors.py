"""Without a free file descriptor a call fails with a clear error; later calls work again."""

from __future__ import annotations

import asyncio

from lilux.primitives.errors import ConfigurationError
from lilux.primitives.subprocess import SubprocessPrimitive
from scarce_descriptors import descriptors_left


def test_a_helper_without_a_free_descriptor_is_a_clear_error() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        message = ""
        with descriptors_left(1):
            try:
                await primitive.execute({"command": "true"})
            except ConfigurationError as error:
                message = str(error)
        assert message == (
            "lilux-proc cannot be started: Too many open files; close files, or raise the limit "
            "of open files (ulimit -n)"
        )
        assert (await primitive.execute({"command": "true"})).success

    asyncio.run(main())


def test_a_running_helper_needs_no_new_descriptor_of_the_caller() -> None:
    async def main() -> None:
        primitive = SubprocessPrimitive()
        await primitive.execute({"command": "true"})
        with descriptors_left(0):
            result = await primitive.execute({"command": "echo", "args": ["still"]})
        assert result.stdout == "still\n"

    asyncio.run(main())
