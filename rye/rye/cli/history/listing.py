"""Printing the list of runs."""

from __future__ import annotations

from rye.cli.output.errors import print_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rye.cli.history.request import ListRequest
    from rye.cli.invocation import Invocation
    from rye.history.query import Wanted

_LIMIT = 50


def list_runs(request: ListRequest, invocation: Invocation) -> int:
    """Print the runs, and return the exit code."""
    from rye.cli.output.history_page import print_rows_as_json, print_runs
    from rye.history.query import runs
    from rye.history.store import opened

    wanted = wanted_runs(request.tool, request.failed, request.since, request.by)
    with opened(invocation.context) as history:
        if request.as_json:
            print_rows_as_json(runs(history.connection, wanted, request.limit))
        else:
            most = request.limit or _LIMIT
            print_runs(list(runs(history.connection, wanted, most + 1)), most)
        for note in history.notes:
            print_error(note)
    return 0


def wanted_runs(tool: str, failed: bool, since: str | None, by: str) -> Wanted:
    """Return which runs the options ask for. Raises ``HistoryError``."""
    from rye.history.query import Wanted

    moment = None
    if since is not None:
        from rye.history.moments import milliseconds_since

        moment = milliseconds_since(since)
    return Wanted(tool=tool, failed=failed, since=moment, by=by)
