"""What a chain would use of a project's unsigned parts, and the approval that this needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rye.context import Context
from rye.executor.config.merge import interpreter_of
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rye.trust.project_approval import ProjectApproval


class ProjectGate:
    """Refuses calls that need an unsigned part of a project that the user has not approved.

    The approval is loaded when a call first uses such a part.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._inside = f"{str(context.project_path).rstrip(os.sep)}{os.sep}"
        self._known: ProjectApproval | None = None

    def admit_dotenv(
        self, chain: Sequence[ChainElement], used: Iterable[str], env_names: Iterable[str]
    ) -> None:
        """Refuse a chain that takes the values of ``used`` from ``.env``.

        ``env_names`` are all names in ``.env``, as ``read_dotenv`` returns them. Raises
        :class:`UnapprovedProjectError`, and an error for a ``config.yaml`` that cannot be read.
        """
        self._approval.require_for_dotenv(_name(chain), used, env_names)

    def admit_programs(
        self,
        chain: Sequence[ChainElement],
        programs: Iterable[str],
        searched: Path | None,
        env_names: Callable[[], Iterable[str]],
    ) -> None:
        """Refuse a chain whose interpreters or packages are in the project, like a ``.env``.

        ``searched`` is the project, if it was searched for interpreters. If not, an absolute path
        in it is the user's own choice: the interpreter of an activated environment on PATH, or the
        one that runs Rye.
        """
        code = self._code(chain, programs, searched)
        if code:
            self._approval.require_for_program(_name(chain), code, env_names())

    def admit_pinned(
        self, chain: Sequence[ChainElement], name: str, env_names: Callable[[], Iterable[str]]
    ) -> None:
        """Refuse a chain that runs the pinned file ``name``, like a ``.env``.

        Nobody signed it, and a lockfile that pins it may have come with the same checkout.
        """
        self._approval.require_for_program(_name(chain), f"{self._inside}{name}", env_names())

    def is_inside(self, path: str) -> bool:
        """True if a program is in the project; a relative path is."""
        return not path.startswith(os.sep) or path.startswith(self._inside)

    @property
    def _approval(self) -> ProjectApproval:
        if self._known is None:
            from rye.trust.project_approval import ProjectApproval

            self._known = ProjectApproval(self._context)
        return self._known

    def _code(
        self, chain: Sequence[ChainElement], programs: Iterable[str], searched: Path | None
    ) -> str:
        """The interpreter or the packages in the project that would be loaded; empty if none."""
        for program in programs:
            if os.sep not in program:
                continue
            if not program.startswith(os.sep):
                return f"{self._inside}{program}"
            if searched is not None and self.is_inside(program):
                return program
        return "" if searched is None else self._node_packages(chain)

    def _node_packages(self, chain: Sequence[ChainElement]) -> str:
        """The nearest ``node_modules`` from which node would load packages for the tool."""
        if not any(interpreter_of(element).get("type") == "node_modules" for element in chain):
            return ""
        folder = f"{os.path.dirname(chain[0].path or '')}{os.sep}"  # noqa: PTH120 - on every call
        if not folder.startswith(self._inside):
            folder = self._inside  # a runtime that is called directly works in the project
        while folder.startswith(self._inside):
            packages = f"{folder}node_modules"
            if os.path.lexists(packages):
                return packages
            folder = folder[: folder.rindex(os.sep, 0, -1) + 1]
        return ""


def _name(chain: Sequence[ChainElement]) -> str:
    return chain[0].item_id if chain else "the call"
