"""Which variables a chain asks for: the only ones that a project's ``.env`` may supply.

A ``.env`` comes with a checkout and nobody signed it. It gives values to names; which names a tool
uses is the decision of those who signed the files of its chain. A chain asks for a name by

- ``permissions.env``, for a tool that reads the variable itself;
- ``${NAME}`` in ``config`` or ``env_config.env``.

A name that decides which program runs is never taken: ``PATH``, the interpreter variables of the
chain, and the variables from which these or its command are made. Neither is a variable of Rye
itself (``RYE_…``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lilux.record import Record
from lilux.templating import Placeholder, substitute

from rye.executor.config.merge import interpreter_variables, variables_of
from rye.executor.config.templates import texts_in
from rye.items.element import ChainElement
from rye.items.permissions import OWN_VARIABLES
from rye.spaces.bundles import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class AskedNames(Record, frozen=True, kw_only=True):
    """The names that the signed files of a chain ask for."""

    names: frozenset[str]
    prefixes: tuple[str, ...]
    """The beginnings of names, from entries such as ``AWS_*``."""
    programs: frozenset[str]
    """The names that decide which program runs."""

    def __bool__(self) -> bool:
        """True if the chain asks for any name."""
        return bool(self.names or self.prefixes)

    def takes(self, name: str) -> bool:
        """True if a ``.env`` may supply the variable."""
        return self.names_it(name) and name not in self.programs

    def names_it(self, name: str) -> bool:
        """True if a signed file asks for the variable, even if it decides which program runs."""
        if name.startswith(OWN_VARIABLES):
            return False
        return name in self.names or name.startswith(self.prefixes)

    def lacks(self, name: str) -> bool:
        """True if the variable could be supplied, but no signed file asks for it."""
        could = name not in self.programs and not name.startswith(OWN_VARIABLES)
        return could and not self.names_it(name)

    def shown(self) -> tuple[str, ...]:
        """The names that may be supplied, as an author writes them, sorted."""
        names = {name for name in self.names if self.takes(name)}
        return tuple(sorted(names | {f"{prefix}*" for prefix in self.prefixes}))


def asked_names(chain: Sequence[ChainElement]) -> AskedNames:
    """Collect the names that the elements of the chain ask for."""
    granted = [element.metadata.permissions for element in chain]
    # What ships with Rye takes variables of the user, but none of a checkout.
    if chain and chain[0].resolution.space.bundle == OWN:
        granted = []
    declared = {name for one in granted if one is not None for name in one.env}
    prefixes = {name[:-1] for name in declared if name.endswith("*")}
    names = {name for name in declared if not name.endswith("*")}

    def collect(placeholder: Placeholder) -> None:
        if placeholder.kind == "env" and not placeholder.name.startswith(OWN_VARIABLES):
            names.add(placeholder.name)

    for element in chain:
        for text in texts_in([element.metadata.config, variables_of(element)]):
            if "${" in text:
                substitute(text, collect)
    return AskedNames(
        names=frozenset(names), prefixes=tuple(sorted(prefixes)), programs=_programs(chain)
    )


def _programs(chain: Sequence[ChainElement]) -> frozenset[str]:
    """The variables that decide which program runs, also through other values or variables."""
    configs = [element.metadata.config for element in chain]
    declared = [variables_of(element) for element in chain]
    found = {"env": {"PATH", *interpreter_variables(chain)}, "param": {"command"}}
    pending = [text for config in configs for text in _choices(config)]
    pending.extend([one.get(name) for one in declared for name in found["env"]])

    def follow(placeholder: Placeholder) -> None:
        kind, name = placeholder.kind, placeholder.name
        if name not in found[kind]:
            found[kind].add(name)
            pending.extend([one.get(name) for one in (declared if kind == "env" else configs)])

    while pending:
        text = pending.pop()
        if isinstance(text, str):
            substitute(text, follow)
    return frozenset(found["env"])


def _choices(config: Any) -> Iterator[Any]:
    """The values of every ``command`` and ``PATH``, also of an MCP server that a tool calls."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            if key in ("command", "PATH"):
                yield value
            yield from _choices(value)
    elif isinstance(config, list | tuple):
        for one in config:
            yield from _choices(one)
