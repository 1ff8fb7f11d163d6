"""Faults of a helper: each of its three processes runs, is stopped, or is killed."""

from __future__ import annotations

import contextlib
import itertools
import signal
from dataclasses import dataclass

import psutil
import pytest
from processes import is_alive, wait_until

NAMES = ("keeper", "guardian", "worker")


@dataclass(frozen=True)
class Faults:
    """Which processes of a helper are stopped and which are killed; the others run."""

    stopped: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()
    kill_first: bool = False

    def __str__(self) -> str:
        stopped = [f"{name} stopped" for name in self.stopped]
        killed = [f"{name} killed" for name in self.killed]
        return ", ".join([*killed, *stopped] if self.kill_first else [*stopped, *killed])

    @property
    def are_cured(self) -> bool:
        """True if the helper continues all processes that were stopped, so that its calls go on."""
        return not self.killed and "keeper" not in self.stopped

    def inject(self, helper: dict[str, psutil.Process]) -> None:
        """Send the signals, without a pause between them."""
        stops = [(helper[name], signal.SIGSTOP) for name in NAMES if name in self.stopped]
        kills = [(helper[name], signal.SIGKILL) for name in NAMES if name in self.killed]
        for process, number in [*kills, *stops] if self.kill_first else [*stops, *kills]:
            # The others may have noticed the first fault and ended.
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def _combinations() -> list[Faults]:
    found = []
    for states in itertools.product(("running", "stopped", "killed"), repeat=len(NAMES)):
        stopped, killed = (
            tuple(name for name, state in zip(NAMES, states, strict=True) if state == wanted)
            for wanted in ("stopped", "killed")
        )
        if 0 < len(stopped) + len(killed) < len(NAMES):
            found.append(Faults(stopped, killed))
            if stopped and killed:
                found.append(Faults(stopped, killed, kill_first=True))
    return found


# Every combination that leaves at least one of the three processes running.
ALL_FAULTS = _combinations()


def _is_quick(faults: Faults) -> bool:
    """True for one fault, and for all combinations of two that leave only the keeper running."""
    affected = {*faults.stopped, *faults.killed}
    return len(affected) == 1 or affected == {"guardian", "worker"}


# For `pytest.mark.parametrize`: the long form has all combinations.
FAULTS = [
    pytest.param(faults, id=str(faults), marks=[] if _is_quick(faults) else pytest.mark.torture)
    for faults in ALL_FAULTS
]


def keep_stopped(process: psutil.Process) -> None:
    """Stop a process again and again until it has ended."""

    def has_ended() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
        return not is_alive(process)

    wait_until(has_ended, "the stopped process has ended", seconds=30)
