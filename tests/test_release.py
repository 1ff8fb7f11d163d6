"""``python -m release``: the wheels, and what the README says about installing them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from messages import exactly

from release import wheels
from release.check import INSTALLERS
from release.steps import StepError, run
from release.wheels import build

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sys.executable).parent


def test_the_readme_shows_the_commands_that_are_checked() -> None:
    readme = (ROOT / "README.md").read_text()
    for command in ("uv run python -m release", *INSTALLERS.values()):
        assert f"\n{command}\n" in readme


def test_a_failing_command_is_reported_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(StepError) as caught:
        run(["sh", "-c", "echo out; echo err >&2; exit 3"], cwd=tmp_path)
    assert str(caught.value) == (
        "sh -c echo out; echo err >&2; exit 3 ended with exit code 3:\nout\nerr"
    )
    with pytest.raises(StepError, match=exactly("no-such-program is not installed")):
        run(["no-such-program"], cwd=tmp_path)


def test_a_wheel_without_the_compiled_helper_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "lilux_proc-0.0.1-py3-none-any.whl"
    old.write_bytes(b"")

    def builds_without_the_binary(*_: object, **__: object) -> str:
        with zipfile.ZipFile(tmp_path / "lilux_proc-0.1.0-py3-none-any.whl", "w") as archive:
            archive.writestr("lilux_proc-0.1.0.dist-info/RECORD", "")
        return ""

    monkeypatch.setattr(wheels, "run", builds_without_the_binary)
    message = "lilux_proc-0.1.0-py3-none-any.whl does not contain .data/scripts/lilux-proc"
    with pytest.raises(StepError, match=exactly(message)):
        build(ROOT, tmp_path)
    assert not old.exists()


def test_the_second_name_of_the_command_completes_itself(tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPTS / "ryex", "completion", "bash"], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("complete -o nosort -F _ryex_completion ryex\n")
    assert "_RYE_COMPLETE=bash_complete" in done.stdout


@pytest.mark.torture
@pytest.mark.parametrize("installer", INSTALLERS)
def test_the_wheels_work_where_there_is_no_compiler(installer: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    command = [sys.executable, "-m", "release", "--out", out, "--installer", installer]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"checked  {installer}: a new tool runs\n" in done.stdout
