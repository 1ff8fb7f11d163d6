"""What a call asks of the pool."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lilux.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Of the config: what a prepared process has for all of its calls, besides the environment.
_SHARED = ("command", "args", "cwd", "confinement")
# The length of the parameters, for a tool that reads the stdin of its caller.
_OF_CALL = ("RYE_STDIN",)


class WarmRequest(Record, frozen=True, kw_only=True):
    """A call that a prepared process could take. Its key may contain secrets."""

    tool: str
    closure: str
    """The digest of what runs."""
    config: Mapping[str, Any] = field(repr=False)
    """Of the primitive."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for calls that one prepared process can take.

        The environment belongs to it with its values: a module may have read them when it was
        imported.
        """
        config = self.config
        command = config["command"]
        return (
            self.closure,
            _identity(command),
            config.get("confinement"),
            frozenset([one for one in config["env"].items() if one[0] not in _OF_CALL]),
            command,
            tuple(config.get("args") or ()),
            config.get("cwd"),
        )

    @property
    def preparation(self) -> dict[str, Any]:
        """The config of the prepared process: that of the call, without its input."""
        confinement = self.config.get("confinement")
        private = () if confinement is None else confinement.tmp
        env = {**self.config["env"], "WARM_PRIVATE_FOLDERS": " ".join(private)}
        shared = {name: self.config[name] for name in _SHARED if name in self.config}
        return {**shared, "env": env, "env_mode": "exact", "render": False}


def _identity(program: str) -> tuple[int, ...]:
    """Changes when the interpreter is replaced."""
    try:
        found = os.stat(program)  # noqa: PTH116 - on the way of each call
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
