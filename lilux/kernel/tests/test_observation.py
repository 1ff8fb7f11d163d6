"""An observed job through the process client."""

from __future__ import annotations

from pathlib import Path

import pytest
from process_transports import Execute


def test_what_a_job_tried_is_in_its_result(execute: Execute, tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    (tmp_path / "given").write_text("given")
    config = {"command": "sh", "args": ["-c", "cat given > new"], "cwd": str(tmp_path)}
    result = execute({**config, "observe": True})
    observation = result.observation
    assert observation is not None
    if observation.missing:
        pytest.skip(f"not tried: {observation.missing}")
    by_target = {(one.what, one.target): one for one in observation.accesses}
    read = by_target["read", str(tmp_path / "given")]
    assert (read.exists, read.count, Path(read.program).name) == (True, 1, "cat")
    assert not by_target["create", str(tmp_path / "new")].exists
    assert (observation.omitted, observation.unreadable) == (0, 0)
    assert execute(config).observation is None
