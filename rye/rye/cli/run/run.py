"""`rye run`: call the tool, show its output, and return the exit code."""

from __future__ import annotations

import signal
import sys

from rye.cli.output.errors import print_error
from rye.cli.output.printing import echo, is_terminal, print_json
from rye.cli.output.progress import RunningTime
from rye.cli.run.interruption import Interrupted, Interruption
from rye.cli.run.live_output import LiveOutput
from rye.cli.run.result_text import (
    exit_code_of,
    failure_text,
    fields_of,
    notes_of,
    plan_lines,
)
from rye.errors import RyeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rye.cli.invocation import Invocation
    from rye.cli.run.request import RunRequest
    from rye.executor.run.result import ExecutionResult


def run(request: RunRequest, invocation: Invocation) -> int:
    """Run the tool, show its output and return the exit code."""
    interruption = Interruption()
    running_time = RunningTime(request.item_id, wanted=not request.json or is_terminal(sys.stdout))
    output = LiveOutput(interruption, running_time)
    try:
        with interruption:
            result = _result(request, invocation, interruption, output, running_time)
            _show(request, result, output)
    except Interrupted as end:
        return _report_interruption(end, interruption, output)
    return exit_code_of(result)


def _result(
    request: RunRequest,
    invocation: Invocation,
    interruption: Interruption,
    output: LiveOutput,
    running_time: RunningTime,
) -> ExecutionResult:
    from rye.executor.run.blocking import execute_blocking

    def begin() -> None:
        interruption.tool_began = True
        running_time.start()

    def read(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
        from rye.cli.run.parameters import parameters_of

        parameters = parameters_of(request, schema)
        begin()
        return parameters

    given = read if request.has_parameters else None
    try:
        context = invocation.context
        if given is None:
            begin()
        return execute_blocking(
            request.item_id,
            given,
            context=context,
            timeout=request.timeout,
            dry_run=request.dry_run,
            frozen=request.frozen,
            on_output=None if request.json else output,
        )
    except RyeError as error:
        from rye.executor.run.failure import failure_of
        from rye.executor.run.result import ExecutionResult

        failed = failure_of(error)
        return ExecutionResult(success=False, error=failed.error, metadata=failed.metadata)
    finally:
        running_time.stop()


def _report_interruption(end: Interrupted, interruption: Interruption, output: LiveOutput) -> int:
    if end.number == signal.SIGPIPE:
        raise BrokenPipeError from None
    output.finish_interrupted()
    if end.number == signal.SIGINT and is_terminal(sys.stderr):
        echo(err=True)  # a newline after the ^C on the terminal
    ended = "; the tool and its processes were ended" if interruption.tool_began else ""
    print_error(f"interrupted{ended}")
    return end.exit_code


def _show(request: RunRequest, result: ExecutionResult, output: LiveOutput) -> None:
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
    for message in (*messages, *notes_of(result)):
        output.end_open_line()
        print_error(message)
