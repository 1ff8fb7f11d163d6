"""Load a Python tool, call it with the parameters on stdin, and print its result.

Usage: ``python -I rye_run_tool.py TOOL_PATH PROJECT_PATH [ANCHOR_PATH [RUNTIME_PATH [SHA256]]]``.
An empty anchor means none. If the tool is the runtime's file, the code in the parameter ``script``
is run. A tool whose hash, without the signature line, is not SHA256 is not run.

Calls the tool's ``main(**params)``, or else its ``execute(params, project_path)``; both may be
coroutine functions. The return value is printed as JSON, ``None`` prints nothing. Everything that
the tool prints goes to stderr, so that it cannot break the result. An exception becomes a traceback
and exit code 1; ``SystemExit`` is honoured. A tool that prepares another program calls ``become`` of
the module ``__main__``, which is this file.

The tool, and the modules that it imports from the anchor and from the folder of this file, are
compiled from source: the bytes that run are those that were verified, not a ``__pycache__``. Both
folders are added to the module path here, never through the environment. Uses only the standard
library, and runs on Python 3.9.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH120, PTH121, PTH123 - pathlib would add to the start of every call

from __future__ import annotations

import json
import os
import re
import sys
from types import ModuleType, TracebackType
from typing import Any, Callable, Iterator, NoReturn  # noqa: UP035 - the project may use an old Python

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Runs a Python tool for python_runtime; not a tool itself"


class ToolError(Exception):
    """A mistake that the author of the tool can fix; only the message is shown."""


def run(argv: list[str]) -> int:
    """Run the tool and return the exit code."""
    _offer_stack()
    tool_path, project_path = argv[1], argv[2]
    verified = [*filter(None, argv[3:4]), os.path.dirname(os.path.abspath(__file__))]
    params = _parameters(_read_parameters())
    if any(os.path.samefile(tool_path, runtime) for runtime in argv[4:5]):
        return _run_script(params)
    result_fd = _reserve_stdout_for_the_result()
    sys.argv = [tool_path]
    _import_only_source_below(verified)
    tool = _load(tool_path, *argv[5:6])
    result = _call(tool, tool_path, params, project_path)
    sys.stdout.flush()
    if result is not None:
        _write_all(result_fd, _as_json(result, tool_path) + b"\n")
    return 0


def _offer_stack() -> None:
    """Let lilux-proc see where the tool is when its time is over.

    It sends SIGUSR2 only to a process that has this memory file, and reads the stack from it, so
    that the output of the tool stays as it is.
    """
    if sys.platform == "linux":
        try:
            import faulthandler

            # 12 is SIGUSR2; importing signal would build an enum of all signals.
            faulthandler.register(12, os.memfd_create("lilux-stack"), chain=False)
        except (AttributeError, ImportError, OSError, ValueError, RuntimeError):
            return


def _read_parameters() -> bytes:
    """Read the whole stdin, or only the first bytes if the rest is for the tool."""
    size = os.environ.pop("RYE_STDIN", None)
    if size is None:
        return sys.stdin.buffer.read()
    parts, missing = [], int(size)
    while missing > 0 and (part := os.read(0, missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


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
    """Do what ``python -c script`` does, without a second interpreter or the length limit of argv.

    The working directory is searched last, so that a file in a project cannot replace a module.
    """
    script = params.get("script")
    if not isinstance(script, str):
        raise ToolError(
            "python_runtime needs the parameter 'script' when called directly; pass the code to run"
        )
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    sys.argv = ["-c", *(str(arg) for arg in params.get("args") or [])]
    sys.path.append("")
    exec(_compile(script, "<script>"), main.__dict__)  # noqa: S102 - running code is its purpose
    return 0


def _reserve_stdout_for_the_result() -> int:
    """Return a descriptor for the result, and send all other output to stderr.

    The descriptor is not inherited, so that processes that the tool starts cannot write to it.
    """
    global _result_fd  # noqa: PLW0603 - for a tool that calls become()
    _result_fd = os.dup(1)
    os.dup2(2, 1)
    return _result_fd


_result_fd = 1


def become(argv: list[str]) -> NoReturn:
    """Replace this process by a program: its output is the result, its exit code the tool's."""
    os.dup2(_result_fd, 1)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - no shell on purpose
    except FileNotFoundError:
        sys.stderr.write(f"{argv[0]} is not installed; install it\n")
        sys.exit(127)


def _import_only_source_below(folders: list[str]) -> None:
    """Add ``folders`` to the module path; imports from them only compile ``.py`` files.

    Only source files are verified, so a planted ``.pyc`` or ``.so`` must not be loaded.
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
        raise ToolError(f"{tool_path} changed after it was verified and was not run; run it again")
    # Not the name of the file: a tool called json.py would replace the module json.
    module = ModuleType("rye_tool")
    module.__file__ = tool_path
    sys.modules["rye_tool"] = module
    exec(_compile(source, tool_path), module.__dict__)  # noqa: S102 - a verified tool
    return module


# The only valid position and spelling of a signature line.
_SIGNATURE = re.compile(
    rb"((?:\xef\xbb\xbf)?(?:#![^\n]*\n)?)# rye:signed:[0-9]{8}T[0-9]{6}Z:[0-9a-f]{64}"
    rb":[A-Za-z0-9_-]{85}[AQgw]==:[0-9a-f]{16}\r?\n"
)


def _content_hash(source: bytes) -> str:
    """The SHA-256 that is signed and pinned: of the file without its signature line."""
    line = _SIGNATURE.match(source)
    content = source if line is None else line[1] + source[line.end() :]
    for name in ("_sha2", "_sha256"):  # faster to import than hashlib
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
        # A traceback of one frame: the arguments did not fit, and the tool did not run.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise ToolError(
                f"{path}: {error}; its signature must match its CONFIG_SCHEMA"
            ) from None
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
            f"{path} returned a value that JSON cannot express: {place} is {kind}; "
            "return dicts, lists, strings, numbers, booleans and None"
        ) from None


def _faults(value: Any, place: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each place that JSON cannot express, and the reason."""
    if depth > 100:
        yield place, "nested too deeply, or contains itself"
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
    """The traceback without the frames of this file, and a hint if there is one."""
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
                f"hint: {name!r} is next to the tool, but modules are imported only from a verified "
                "folder; add an __init__.py and sign all its files\n"
            )
    return text


def _main(step: Callable[[list[str]], int]) -> NoReturn:
    try:
        code = step(sys.argv[:])
    except ToolError as error:
        _fail(str(error))
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        _fail(_explain(error, sys.argv[0]))
    sys.exit(code)


if __name__ == "__main__":
    _main(run)
