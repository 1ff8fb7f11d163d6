"""`rye run`: find the tool's schema, read the values, run the tool, show the result."""

from __future__ import annotations

import signal
import sys
from functools import partial

from rye.cli.output.errors import print_error
from rye.cli.output.printing import echo, is_terminal, print_json
from rye.cli.output.progress import RunningTime
from rye.cli.run.conversation import TerminalListener
from rye.cli.run.interruption import Interrupted, Interruption
from rye.cli.run.live_output import LiveOutput
from rye.cli.run.result_text import (
    exit_code_of,
    failure_text,
    fields_of,
    files_of,
    notes_of,
    plan_lines,
)
from rye.errors import RyeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rye.cli.invocation import Invocation
    from rye.cli.run.details import Details
    from rye.cli.run.request import RunRequest
    from rye.executor.run.blocking import BlockingExecutor
    from rye.executor.run.confine import Widening
    from rye.executor.run.result import ExecutionResult


def run(request: RunRequest, invocation: Invocation) -> int:
    """Run the tool, show its output and return the exit code."""
    interruption = Interruption()
    running_time = RunningTime(request.item_id, wanted=_wants_running_time(request))
    output = LiveOutput(interruption, running_time)
    details = _details(request)
    try:
        with interruption:
            result, missing = _result(
                request, invocation, interruption, output, running_time, details=details
            )
            _show(request, invocation, result, missing, output)
            if details is not None:
                output.end_open_line()
                details.ended(result)
    except Interrupted as end:
        return _report_interruption(end, interruption, output)
    return exit_code_of(result)


def _wants_running_time(request: RunRequest) -> bool:
    return not request.quiet and (not request.json or is_terminal(sys.stdout))


def _result(
    request: RunRequest,
    invocation: Invocation,
    interruption: Interruption,
    output: LiveOutput,
    running_time: RunningTime,
    *,
    details: Details | None,
) -> tuple[ExecutionResult, list[str]]:
    """The result, and the permissions that were not enforced."""
    from rye.executor.run.blocking import BlockingExecutor
    from rye.recording.record import CLI, Caller

    try:
        with BlockingExecutor(invocation.context, start_helper=not request.dry_run) as executor:
            widening = _widening(request)
            parameters = given_parameters(request, executor)
            interruption.tool_began = True
            running_time.start()
            if details is not None:
                details.step("start")
            result = executor.execute(
                request.item_id,
                parameters,
                timeout=request.timeout,
                dry_run=request.dry_run,
                frozen=request.frozen,
                on_output=None if request.json else output,
                listener=TerminalListener(running_time, output, stdin_is_used=request.reads_stdin),
                stdin=None if request.reads_stdin else partial(_pass_stdin_on, running_time),
                widening=widening,
                unenforced="warn",
                watch=details,
                caller=Caller(kind=CLI),
            )
            accepted = widening is not None and widening.unenforced
            return result, [] if accepted else executor.not_enforced(result)
    except RyeError as error:
        from rye.executor.run.failure import failure_of
        from rye.executor.run.result import ExecutionResult

        failed = failure_of(error)
        return ExecutionResult(success=False, error=failed.error, metadata=failed.metadata), []
    finally:
        running_time.stop()


def _pass_stdin_on(running_time: RunningTime) -> int | None:
    """The descriptor of stdin, for a tool that reads it."""
    if is_terminal(sys.stdin):
        # The line would be in the way of what the user types.
        running_time.stop()
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError):
        return None


def given_parameters(request: RunRequest, executor: BlockingExecutor) -> Mapping[str, Any] | None:
    """Return the values of ``--params``, and of ``key=value`` as the tool's schema has them."""
    if not request.has_parameters:
        return None
    from rye.cli.run.parameters import needs_reading, params_object, parse_pairs

    # First, since it may wait for stdin: the tool is read right before it is verified.
    given = params_object(request)
    pairs = request.pairs
    if pairs:
        schema = executor.declared_schema(request.item_id)
        if any(map(needs_reading, pairs)):
            from rye.cli.run.words import plain_pairs

            used = request.params == "-"
            pairs = plain_pairs(pairs, schema, item_id=request.item_id, stdin_is_used=used)
            schema = executor.declared_schema(request.item_id)
        given |= parse_pairs(pairs, schema, item_id=request.item_id)
    return given


def _details(request: RunRequest) -> Details | None:
    if not request.verbose and not request.debug:
        return None
    from rye.cli.run.details import Details

    return Details(debug=request.debug)


def _widening(request: RunRequest) -> Widening | None:
    if not request.allow:
        return None
    from rye.cli.run.allow import parse_allow

    return parse_allow(request.allow)


def _report_interruption(end: Interrupted, interruption: Interruption, output: LiveOutput) -> int:
    if end.number == signal.SIGPIPE:
        raise BrokenPipeError from None
    output.finish_interrupted()
    if end.number == signal.SIGINT and is_terminal(sys.stderr):
        echo(err=True)  # a newline after the ^C on the terminal
    ended = "; the tool and its processes were ended" if interruption.tool_began else ""
    print_error(f"interrupted{ended}")
    return end.exit_code


def _show(
    request: RunRequest,
    invocation: Invocation,
    result: ExecutionResult,
    missing: list[str],
    output: LiveOutput,
) -> None:
    if request.json:
        print_json(fields_of(result))
        return
    if "plan" in result.metadata:
        for line in plan_lines(result.metadata["plan"]):
            echo(line)
    elif "return_code" in result.metadata:
        output.finish()
    else:
        output.show(result.data)
    messages = [] if result.success else [failure_text(result)]
    # What a failed tool tried explains its failure, even to somebody who asked for silence.
    notes = [] if request.quiet and result.success else list(notes_of(result))
    if result.success and not request.quiet:
        notes += files_of(result, str(invocation.context.project_path))
    if missing:
        messages.append(f"not enforced for this call: {', '.join(missing)}")
    for message in (*messages, *notes):
        output.end_open_line()
        print_error(message)
