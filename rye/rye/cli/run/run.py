"""`rye run`: a request becomes a call, and its result what is shown and the exit code."""

from __future__ import annotations

import signal
import sys

from rye.cli.output.errors import tell
from rye.cli.output.printing import echo, is_terminal, print_json
from rye.cli.output.progress import Progress
from rye.cli.run.interruption import Interrupted, Interruption
from rye.cli.run.live_output import LiveOutput
from rye.cli.run.result_text import exit_code_of, failure_text, fields_of, notes_of
from rye.errors import RyeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rye.cli.invocation import Surroundings
    from rye.cli.run.request import RunRequest
    from rye.executor.run.result import ExecutionResult


def run(request: RunRequest, surroundings: Surroundings) -> int:
    """Run the tool, show what it says, and give the exit code."""
    interruption = Interruption()
    progress = Progress(request.item_id, wanted=not request.json or is_terminal(sys.stdout))
    output = LiveOutput(interruption, progress)
    try:
        with interruption:
            result = _result(request, surroundings, interruption, output, progress)
            _show(request, result, output)
    except Interrupted as end:
        return _tell_end(end, interruption, output)
    return exit_code_of(result)


def _result(
    request: RunRequest,
    surroundings: Surroundings,
    interruption: Interruption,
    output: LiveOutput,
    progress: Progress,
) -> ExecutionResult:
    from rye.executor.run.blocking import execute_blocking

    def begin() -> None:
        interruption.tool_began = True
        progress.start()

    def read(schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
        from rye.cli.run.parameters import parameters_of

        parameters = parameters_of(request, schema)
        begin()
        return parameters

    given = read if request.has_parameters else None
    try:
        context = surroundings.context
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
        progress.stop()


def _tell_end(end: Interrupted, interruption: Interruption, output: LiveOutput) -> int:
    if end.number == signal.SIGPIPE:
        raise BrokenPipeError from None
    output.break_off()
    if end.number == signal.SIGINT and is_terminal(sys.stderr):
        echo(err=True)  # after the ^C that the terminal shows
    ended = "; the tool and what it started were ended" if interruption.tool_began else ""
    tell(f"interrupted{ended}")
    return end.exit_code


def _show(request: RunRequest, result: ExecutionResult, output: LiveOutput) -> None:
    if request.json:
        print_json(fields_of(result))
        return
    if "plan" in result.metadata:
        from rye.cli.run.plan_text import plan_lines

        for line in plan_lines(result.metadata["plan"]):
            echo(line)
    elif "return_code" in result.metadata:
        output.finish()
    else:
        output.show(result.data)
    messages = [] if result.success else [failure_text(result)]
    for message in (*messages, *notes_of(result)):
        output.make_room()
        tell(message)
