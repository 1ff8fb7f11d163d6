"""What the records of one chain have in common, and the program that its calls start."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from lilux.runtime.env_resolver.interpreters import which

from rye.executor.run.prepare import PreparedCall
from rye.items.element import ChainElement
from rye.items.permissions import permissions_to_json
from rye.recording.digests import Secrets, digest_of_description
from rye.recording.interpreters import stamp
from rye.recording.record import fragment_of
from rye.spaces.ids import SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FRESH_SECONDS = 1.0


class KnownChain:
    """The part of a record that is the same for many calls, as text.

    Encoding it again for each call would take longer than everything else in the record.
    """

    def __init__(self, chain: Sequence[ChainElement], project: str) -> None:
        self.chain = chain
        self.secrets = Secrets(chain[0].metadata.config_schema)
        self._own = fragment_of({"project": project, **_fields_of_chain(chain)})
        self._state: object = None
        self._with_call = ""
        self._program: tuple[float, object, dict[str, Any]] = (0.0, None, {})

    def fragment(self, call: PreparedCall | None) -> str:
        """The fields of the chain and of a prepared call, as JSON without braces."""
        if call is None:
            return self._own
        config = call.config.config
        names = program = None
        if call.config.primitive_id == SUBPROCESS:
            names = tuple(config["env"])
            program = self._stamp(config["command"], config["env"])
        permissions, widened = call.config.permissions, call.options.widening is not None
        state = (names, program, permissions, widened)
        if state != self._state:
            fields: dict[str, Any] = {}
            if names is not None:
                fields = {"environment": sorted(names), "interpreter": program}
            if permissions is not None:
                fields["permissions"] = permissions_to_json(permissions)
            if widened:
                fields["widened"] = True
            more = fragment_of(fields)
            self._with_call = f"{self._own},{more}" if more else self._own
            self._state = state
        return self._with_call

    def _stamp(self, command: str, env: Mapping[str, str]) -> dict[str, Any]:
        """The program that a call starts, as it was at most a second ago."""
        now = time.monotonic()
        key = (command, env.get("PATH"))
        looked, known, found = self._program
        if known != key or now - looked > _FRESH_SECONDS:
            found = program_of(command, env)
            self._program = (now, key, found)
        return found


def program_of(command: str, env: Mapping[str, str]) -> dict[str, Any]:
    """The program that a command starts, as it is now."""
    path = command if os.sep in command else which(command, env) or command
    return stamp(str(path))


def _fields_of_chain(chain: Sequence[ChainElement]) -> dict[str, Any]:
    tool = chain[0]
    metadata = tool.metadata
    return {
        "item": tool.item_id,
        "version": tool.version,
        "space": tool.space,
        "signers": list(dict.fromkeys([one.signer for one in chain if one.signer])),
        "chain": {one.item_id: one.integrity for one in chain},
        "described": digest_of_description(metadata.description, metadata.config_schema),
    }
