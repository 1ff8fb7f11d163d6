"""Results as large as the output limits allow."""

from __future__ import annotations

import pytest
from proc_client import ProcClient


@pytest.mark.torture
def test_a_large_result_of_a_job_that_keeps_its_background_ends_no_other_job(
    client: ProcClient,
) -> None:
    """The result is larger than the largest request, and passes from the keeper to the worker."""
    size = 540_000_000
    other = client.send("exec", command="cat", args=["/dev/zero"], stream=True, capture=False)
    assert client.receive().id == other
    client.send("pause", target=other)
    large = client.send(
        "exec",
        command="head",
        args=["-c", str(size), "/dev/zero"],
        background="keep",
        output_limit=size,
    )
    while (answer := client.receive()).id != large:
        pass
    assert (answer.kind, len(answer.stdout), answer.header["truncated"]["stdout"]) == (
        "result",
        size,
        0,
    )
    client.send("resume", target=other)
    while client.receive().kind != "stdout":
        pass
    client.send("cancel", target=other)
