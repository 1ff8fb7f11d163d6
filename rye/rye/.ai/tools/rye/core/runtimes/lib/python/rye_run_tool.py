# rye:signed:20261116T195035Z:54e26f095ae16577debe11b6c1016502bccbd7c80ca5449e4ad490722d8b79a2:bvf2NwZovo_vFvyZ8BWNXDRhK2kIWGqtnY-AsRGwTP68sZz5EqSyb_f0A3LPuAO40vJIUUvnh_XEy8W38fFIAA==:cd7c763470a45766
"""Loads a Python tool by its path, calls it with the parameters on stdin, prints its result.

Usage: ``python -I rye_run_tool.py TOOL_PATH PROJECT_PATH [ANCHOR_PATH [RUNTIME_PATH [SHA256]]]``; an
empty anchor is none, and a tool that is the runtime's own file means the text ``script`` on stdin.
A tool that does not have this hash, without its signature line, was changed since, and is not run.

The tool's ``main(**params)`` is called, or else its ``execute(params, project_path)``; either may
be a coroutine function. What it returns is printed as JSON; what it prints goes to stderr, so
that a log line never breaks the result; if it returns ``None``, stdout stays empty. An exception
becomes a traceback and exit code 1, ``SystemExit`` is honoured.

The tool is compiled from its own text, and so is what it imports from the anchor and from the
library beside this file: the bytes that were verified are those that run, not a ``__pycache__``.
Both are put on the module path here, once that is certain, and never by way of the environment.
Only the standard library is used, in a form that Python 3.9 understands.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH120, PTH121, PTH123 - pathlib would add to the start of every call

from __future__ import annotations

import json
import os
import re
import sys
from types import ModuleType, TracebackType
from typing import Any, Callable, Iterator, NoReturn  # noqa: UP035 - the project may bring an old Python

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Calls a Python tool for python_runtime; not to be run by itself"


class ToolError(Exception):
    """Something that the author of the tool can mend; the message is all that is shown."""


def run(argv: list[str]) -> int:
    """Runs the tool and gives the exit code."""
    tool_path, project_path = argv[1], argv[2]
    verified = [*filter(None, argv[3:4]), os.path.dirname(os.path.abspath(__file__))]
    params = _parameters(sys.stdin.buffer.read())
    if any(os.path.samefile(tool_path, runtime) for runtime in argv[4:5]):
        return _run_script(params)
    result_fd = _keep_stdout_for_the_result()
    sys.argv = [tool_path]
    _import_only_source_below(verified)
    tool = _load(tool_path, *argv[5:6])
    result = _call(tool, tool_path, params, project_path)
    sys.stdout.flush()
    if result is not None:
        _write_all(result_fd, _as_json(result, tool_path) + b"\n")
    return 0


def _parameters(text: bytes) -> dict[str, Any]:
    try:
        params = json.loads(text or b"{}")
    except ValueError as error:
        raise ToolError(
            f"the parameters on stdin are not JSON ({error}); send one JSON object"
        ) from None
    if not isinstance(params, dict):
        raise ToolError(
            f"the parameters on stdin are a JSON {type(params).__name__}; send one JSON object"
        )
    return params


def _run_script(params: dict[str, Any]) -> int:
    """What ``python -c script`` does, without a second interpreter and without a limit of argv.

    The working directory is searched last: what lies in a project cannot stand in for a module.
    """
    script = params.get("script")
    if not isinstance(script, str):
        raise ToolError(
            "python_runtime run by itself needs the parameter 'script'; pass the text to run"
        )
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = ["-c", *(str(arg) for arg in params.get("args") or [])]
    sys.path.append("")
    exec(_compile(script, "<script>"), main.__dict__)  # noqa: S102 - running a text is the task
    return 0


def _keep_stdout_for_the_result() -> int:
    """Gives a descriptor for the result; everything else that writes to stdout meets stderr.

    The descriptor is not inherited, so that a process started by the tool cannot write to it.
    """
    result_fd = os.dup(1)
    os.dup2(2, 1)
    return result_fd


def _import_only_source_below(folders: list[str]) -> None:
    """Puts ``folders`` on the module path, such that imports from there compile the ``.py`` file
    and take nothing else.

    Dependencies are verified as source; a planted ``.pyc`` or ``.so`` would not have been.
    """
    from importlib.machinery import FileFinder, SourceFileLoader

    class VerifiedSource(SourceFileLoader):
        def get_code(self, fullname: str) -> Any:
            path = self.get_filename(fullname)
            return self.source_to_code(self.get_data(path), path)

    roots = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)

    def hook(path: str) -> FileFinder:
        if not os.path.join(os.path.realpath(path or os.curdir), "").startswith(roots):
            raise ImportError(path)
        return FileFinder(path, (VerifiedSource, [".py"]))

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    sys.path[:0] = folders


def _compile(source: str | bytes, name: str) -> Any:
    return compile(source, name, "exec", dont_inherit=True)


def _load(tool_path: str, integrity: str | None = None) -> ModuleType:
    with open(tool_path, "rb") as file:
        source = file.read()
    if integrity is not None and _content_hash(source) != integrity:
        raise ToolError(
            f"{tool_path} was changed after it was verified, and was not run; run it again"
        )
    # Not the file's own name: a tool called json.py would take the place of json.
    module = ModuleType("rye_tool")
    module.__file__ = tool_path
    sys.modules["rye_tool"] = module
    exec(_compile(source, tool_path), module.__dict__)  # noqa: S102 - a verified tool
    return module


# The one place and the one spelling of a signature line.
_SIGNATURE = re.compile(
    rb"((?:\xef\xbb\xbf)?(?:#![^\n]*\n)?)# rye:signed:[0-9]{8}T[0-9]{6}Z:[0-9a-f]{64}"
    rb":[A-Za-z0-9_-]{85}[AQgw]==:[0-9a-f]{16}\r?\n"
)


def _content_hash(source: bytes) -> str:
    """What a signature covers and a lockfile pins: SHA-256 of the file without its line."""
    line = _SIGNATURE.match(source)
    content = source if line is None else line[1] + source[line.end() :]
    for name in ("_sha2", "_sha256"):  # what hashlib would load, among much else
        try:
            return str(__import__(name).sha256(content).hexdigest())
        except ImportError:
            continue
    import hashlib

    return hashlib.sha256(content).hexdigest()


def _call(tool: ModuleType, path: str, params: dict[str, Any], project_path: str) -> Any:
    main = getattr(tool, "main", None)
    execute = getattr(tool, "execute", None)
    try:
        if callable(main):
            result = main(**params)
        elif callable(execute):
            result = execute(params, project_path)
        else:
            raise ToolError(
                f"{path} defines neither main(**params) nor execute(params, project_path); "
                "add one of them"
            )
    except TypeError as error:
        # One frame only: the call itself failed, nothing of the tool has run.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise ToolError(f"{path}: {error}; make its signature fit its CONFIG_SCHEMA") from None
        raise
    if hasattr(result, "__await__"):
        import asyncio

        async def settle() -> Any:
            return await result

        return asyncio.run(settle())
    return result


def _as_json(result: Any, path: str) -> bytes:
    try:
        return json.dumps(result, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        place, kind = next(_faults(result, "result"), ("result", "unusable"))
        raise ToolError(
            f"{path} returned something that JSON cannot express: {place} is {kind}; "
            "return dicts, lists, texts, numbers, booleans and None"
        ) from None


def _faults(value: Any, place: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Where JSON fails, and why."""
    if depth > 100:
        yield place, "nested too deeply, or within itself"
    elif isinstance(value, float):
        if not -float("inf") < value < float("inf"):
            yield place, f"the number {value}"
    elif isinstance(value, (dict, list, tuple)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if not isinstance(key, (str, int, float, type(None))):
                yield place, f"a dict with a key of type {type(key).__name__}"
            yield from _faults(inner, f"{place}[{key!r}]", depth + 1)
    elif value is not None and not isinstance(value, (str, int)):
        yield place, f"of type {type(value).__name__}"


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _fail(message: str) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.write(message if message.endswith("\n") else message + "\n")
    sys.exit(1)


def _explain(error: BaseException, tool_path: str) -> str:
    """The traceback from the tool's first frame on, and a hint where one helps."""
    import traceback

    frames: TracebackType | None = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    name = getattr(error, "name", None)
    if isinstance(error, ModuleNotFoundError) and isinstance(name, str):
        beside = os.path.join(os.path.dirname(tool_path), name.split(".")[0])
        if os.path.exists(beside + ".py") or os.path.isdir(beside):
            text += (
                f"hint: {name!r} lies beside the tool, but a folder is only searched if it is "
                "marked as one tool and verified; add an __init__.py and sign its files\n"
            )
    return text


def _main(step: Callable[[list[str]], int]) -> NoReturn:
    try:
        code = step(sys.argv[:])
    except ToolError as error:
        _fail(str(error))
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its author's to read
        _fail(_explain(error, sys.argv[0]))
    sys.exit(code)


if __name__ == "__main__":
    _main(run)
