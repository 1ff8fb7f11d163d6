"""Check tools: what keeps them from running, and what nobody can have meant.

The static part reads only the file and the files of its chain, whoever signed them. ``rye sign``
uses it, too. The rest verifies the tool as a call does, until parameters would be needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lilux.primitives.errors import LiluxError, SchemaError

from rye.authoring.keys import (
    unknown_annotations,
    unknown_names,
    unknown_schema_words,
    unknown_settings,
)
from rye.authoring.placeholders import (
    missing_schema,
    unknown_placeholders,
    unused_parameters,
)
from rye.authoring.programs import missing_modules, missing_program, typescript_problem
from rye.authoring.report import Report
from rye.authoring.source_text import refuse_conflicts, refuse_syntax_errors
from rye.context import Context
from rye.errors import ItemNotFoundError, NoMetadataError, RyeError
from rye.executor.chain.snapshot import Library, Snapshot
from rye.executor.checking import Checking
from rye.executor.config.build import MCP_TOOL
from rye.executor.config.merge import merge_configs
from rye.executor.inspection import check_before_signing, resolution_of, unverified_chain
from rye.items.element import ChainElement
from rye.items.reader import read_item
from rye.spaces.ids import HTTP_CLIENT
from rye.spaces.model import Resolution

_FOUNDATIONS = ("primitive", "runtime", "library")


class Checker:
    """Checks the tools of one project."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._checking = Checking(context)

    def project_items(self) -> Iterable[str]:
        """The ids of the tools of the project."""
        return self._checking.project_items()

    def check(self, item_id: str) -> Report:
        """Check one tool. Raises ``ItemNotFoundError`` if there is no such tool."""
        found = self._checking.library.resolver.resolve(item_id)
        errors: list[str] = []
        if found.path is not None:
            root = found.space.root
            errors += static_errors(found.item_id, found.path, root, self._checking.library)
        checked = self._checking.check(item_id)
        warnings = list(checked.warnings)
        if checked.error is not None:
            errors.append(str(checked.error))
        elif checked.chain:
            warnings += _advice(checked.chain, self._context)
            errors += self._missing(checked.chain)
        return Report(found.item_id, tuple(dict.fromkeys(errors)), tuple(warnings))

    def _missing(self, chain: Sequence[ChainElement]) -> list[str]:
        try:
            env = self._checking.environment(tuple(chain))
        except (RyeError, LiluxError) as error:
            return [str(error)]
        parts = (missing_program, missing_modules, typescript_problem)
        return [error for part in parts for error in part(chain, env)]


def refuse_what_cannot_run(item_id: str, path: Path, root: Path, library: Library) -> None:
    """Raise for a file that no signature can make run.

    ``ItemFormatError``: a merge conflict, a syntax error or invalid metadata; and the errors of
    :func:`check_before_signing`.
    """
    refuse_conflicts(path, read_item(path, root).content)
    check_before_signing(item_id, path, root, library)
    snapshot = library.snapshot()
    try:
        metadata = snapshot.metadata(resolution_of(item_id, path, root, snapshot))
    except NoMetadataError:
        return
    refuse_syntax_errors(path, metadata, library.context)


def static_errors(item_id: str, path: Path, root: Path, library: Library) -> list[str]:
    """The errors that can be seen in the file, one if it cannot even be read."""
    try:
        refuse_what_cannot_run(item_id, path, root, library)
        return mistakes(item_id, path, root, library)
    except RyeError as error:
        return [str(error)]


def mistakes(item_id: str, path: Path, root: Path, library: Library) -> list[str]:
    """What the author of a readable file cannot have meant. A helper file has none."""
    snapshot = library.snapshot()
    found = resolution_of(item_id, path, root, snapshot)
    try:
        snapshot.metadata(found)
    except NoMetadataError:
        return []
    chain = unverified_chain(found, snapshot)
    errors = list(unknown_names(read_item(path, root)))
    if chain:
        errors += _mistakes_in(chain, library.context)
    else:
        errors += _missing_executor(found, snapshot)
    return errors


def _missing_executor(found: Resolution, snapshot: Snapshot) -> Iterator[str]:
    executor = snapshot.metadata(found).executor_id
    try:
        if executor is not None:
            snapshot.resolve(executor, found.space)
    except ItemNotFoundError as error:
        guess = f" (did you mean '{error.nearest[0]}'?)" if error.nearest else ""
        yield (
            f"{found.path}: there is no runtime '{executor}'{guess}; "
            "correct the executor id and sign again"
        )
    except RyeError:
        return


def _mistakes_in(chain: Sequence[ChainElement], context: Context) -> Iterator[str]:
    tool = chain[0]
    yield from unknown_annotations(tool)
    yield from _cannot_ask(chain)
    yield from unknown_schema_words(tool)
    yield from _invalid_schema(tool)
    if len(chain) > 1:
        merged = merge_configs(chain, None, context)
        yield from unknown_settings(merged, chain)
        yield from unknown_placeholders(merged, chain)


def _cannot_ask(chain: Sequence[ChainElement]) -> Iterator[str]:
    """Why a tool that needs a user could never ask one."""
    tool = chain[0]
    if not tool.metadata.needs_user:
        return
    if tool.metadata.tool_type in _FOUNDATIONS:
        yield f"{tool.path}: needs_user is for tools; remove it and sign again"
    elif tool.metadata.stdin:
        yield (
            f"{tool.path}: needs_user: a tool that reads stdin cannot ask; "
            "remove one of the two and sign again"
        )
    elif chain[-1].item_id == HTTP_CLIENT and MCP_TOOL not in tool.metadata.config:
        yield f"{tool.path}: needs_user: an HTTP request cannot ask; remove it and sign again"


def _invalid_schema(tool: ChainElement) -> Iterator[str]:
    from lilux.schemas.schema_validator import compile_once

    if tool.metadata.config_schema is None:
        return
    try:
        compile_once(dict(tool.metadata.config_schema))
    except SchemaError as error:
        yield f"{tool.path}: the schema of the parameters: {error}"


def _advice(chain: Sequence[ChainElement], context: Context) -> Iterator[str]:
    tool = chain[0]
    if tool.metadata.tool_type in _FOUNDATIONS or tool.path is None:
        return
    if not tool.metadata.description:
        yield f"{tool.path}: has no description, by which people and agents find it; add one"
    if len(chain) > 1:
        merged = merge_configs(chain, None, context)
        yield from missing_schema(merged, chain)
        yield from unused_parameters(merged, chain)
