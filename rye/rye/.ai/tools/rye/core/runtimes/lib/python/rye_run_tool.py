# rye:signed:20261118T125305Z:c33dbe13b9a73539100277ccb889ff7979fae7396b7b55a6761f1951935aef2c:_nCFgSg83gIiqkvnXiXuBtfi4nmlql5STqAuEipTUTdVuVl_zbTZ_R92mnR3SFQ_XO5paMGLLVMFwZvbM6gMAg==:0cdadc7a57fefd2c
"""Load a Python tool, call it with the parameters on stdin, and print its result.

Usage: ``rye_start.py TOOL_PATH PROJECT_PATH ANCHOR_PATH TOOL_TYPE SOURCE_DIR COMPILED_DIR``, which
starts this file. An empty anchor means none. TOOL_TYPE is ``runtime`` if the runtime is called
directly: then the code in the parameter ``script`` is run.

TOOL_PATH, the anchor and the folder of this file are in a private copy that Rye has just checked.
Tracebacks and messages name the author's file, which is in SOURCE_DIR. COMPILED_DIR has the
compiled forms of the files; empty if there are none.

Calls the tool's ``main(**params)``, or else its ``execute(params, project_path)``; both may be
coroutine functions. The return value is printed as JSON, ``None`` prints nothing. Everything that
the tool prints goes to stderr, so that it cannot break the result. An exception becomes a traceback
and exit code 1; ``SystemExit`` is honoured. A tool that prepares another program calls ``become`` of
the module ``__main__``, which is this file.

Modules are imported from the anchor and from the folder of this file. Both are added to the module
path here, never through the environment. Uses only the standard library, and runs on Python 3.9.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH119, PTH120 - pathlib would add to the start of every call

from __future__ import annotations

import os
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Callable, Iterator, NoReturn  # noqa: UP035 - the project may use an old Python

    CodeOf = Callable[[str, str, str], Any]

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Runs a Python tool for python_runtime; not a tool itself"
CONFIG_SCHEMA = {"type": "object"}


class ToolError(Exception):
    """A mistake that the author of the tool can fix; only the message is shown."""


class Places:
    """Where the files of the tool are, and where their author has them."""

    def __init__(self, argv: list[str], code_of: CodeOf) -> None:
        self.tool, self.project, self.anchor, _, source_dir, self.compiled = argv[1:7]
        self.lib = os.path.dirname(os.path.abspath(__file__))
        self.shown = os.path.join(source_dir, os.path.basename(self.tool))
        self._copy = self.anchor or os.path.dirname(self.tool)
        inner = os.path.dirname(self.tool)[len(self._copy) :]
        self._source = source_dir[: len(source_dir) - len(inner)]
        self._root = os.path.dirname(self.lib)
        self._code_of = code_of

    def name(self, path: str) -> str:
        """The author's file that ``path`` is a copy of."""
        if path.startswith(self._copy + os.sep):
            return self._source + path[len(self._copy) :]
        return path

    def code(self, path: str) -> Any:
        """The code of a verified source file."""
        compiled = ""
        if self.compiled and path.startswith(self._root + os.sep):
            compiled = self.compiled + path[len(self._root) :] + "c"
        return self._code_of(path, compiled, self.name(path))


def run(argv: list[str], code_of: CodeOf) -> int:
    """Run the tool and return the exit code."""
    places = Places(argv, code_of)
    tool = _prepared(places) if "LILUX_PREPARED" in os.environ else None
    _offer_stack()
    params = _parameters(_read_parameters())
    if argv[4] == "runtime":
        return _run_script(params)
    result_fd = _reserve_stdout_for_the_result()
    if tool is None:
        _set_up_imports(places)
        tool = _load(places)
    result = _call(tool, places.shown, params, places.project)
    sys.stdout.flush()
    if result is not None:
        _write_all(result_fd, _as_json(result, places.shown) + b"\n")
    return 0


def _set_up_imports(places: Places) -> None:
    sys.argv = [places.tool]
    _import_only_source_below([*filter(None, [places.anchor]), places.lib], places)


def _prepared(places: Places) -> ModuleType:
    """Load the tool, and return once for each call, in a copy of this process."""
    global _leave  # noqa: PLW0603 - a copy ends in its own way
    _set_up_imports(places)
    import rye_prepared

    tool: ModuleType = rye_prepared.prepare(lambda: _load(places))
    _leave = rye_prepared.leave
    return tool


_leave: Callable[[SystemExit], NoReturn] | None = None


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
        params = _decode(text or b"{}")
    except ValueError as error:
        raise ToolError(
            f"the parameters on stdin are not JSON ({error}); send one JSON object"
        ) from None
    if not isinstance(params, dict):
        raise ToolError(
            f"the parameters on stdin are a JSON {type(params).__name__}; send one JSON object"
        )
    return params


class _Scanned:
    """What the scanner of json makes of numbers and objects; it reads these names."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int


def _decode(text: bytes) -> Any:
    """``json.loads``, of which only the part in C is loaded: json takes as long to load as Python."""
    try:
        from _json import make_scanner

        value, end = make_scanner(_Scanned)(text.decode(), 0)
        if end == len(text):
            return value
    except (ImportError, StopIteration, ValueError):
        pass
    import json

    return json.loads(text)


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
    code = compile(script, "<script>", "exec", dont_inherit=True)
    exec(code, main.__dict__)  # noqa: S102 - running code is its purpose
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


def _import_only_source_below(folders: list[str], places: Places) -> None:
    """Add ``folders`` to the module path; imports from them only load ``.py`` files.

    Only source files are verified, so a planted ``.pyc`` or ``.so`` must not be loaded.
    """
    # importlib would have to be loaded; this part of it always is.
    from _frozen_importlib_external import FileFinder, SourceFileLoader

    class VerifiedSource(SourceFileLoader):  # type: ignore[misc]
        def get_code(self, fullname: str) -> Any:
            return places.code(self.get_filename(fullname))

    roots = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)

    def hook(path: str) -> Any:
        if not os.path.join(os.path.realpath(path or os.curdir), "").startswith(roots):
            raise ImportError(path)
        return FileFinder(path, (VerifiedSource, [".py"]))

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    sys.path[:0] = folders


def _load(places: Places) -> ModuleType:
    # Not the name of the file: a tool called json.py would replace the module json.
    module = ModuleType("rye_tool")
    module.__file__ = places.tool
    sys.modules["rye_tool"] = module
    exec(places.code(places.tool), module.__dict__)  # noqa: S102 - a verified tool
    return module


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
        return _encode(result).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        place, kind = next(_faults(result, "result"), ("result", "unusable"))
        raise ToolError(
            f"{path} returned a value that JSON cannot express: {place} is {kind}; "
            "return dicts, lists, strings, numbers, booleans and None"
        ) from None


def _encode(result: Any) -> str:
    """``json.dumps``, of which only the part in C is loaded."""
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:
        import json

        return json.dumps(result, allow_nan=False)
    encoder = make_encoder(
        {}, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False
    )
    return "".join(encoder(result, 0))


def _refuse(value: Any) -> NoReturn:
    raise TypeError(type(value).__name__)


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


def _explain(error: BaseException, source_dir: str) -> str:
    """The traceback without the frames of this file, and a hint if there is one."""
    import traceback

    frames: TracebackType | None = error.__traceback__
    own = (__file__, __file__.replace("rye_start.py", "rye_run_tool.py"))
    while frames is not None and frames.tb_frame.f_code.co_filename in own:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    name = getattr(error, "name", None)
    if isinstance(error, ModuleNotFoundError) and isinstance(name, str):
        beside = os.path.join(source_dir, name.split(".")[0])
        if os.path.exists(beside + ".py") or os.path.isdir(beside):
            text += (
                f"hint: {name!r} is next to the tool, but modules are imported only from a verified "
                "folder; add an __init__.py and sign all its files\n"
            )
    return text


def start(code_of: CodeOf) -> NoReturn:
    """Run the tool that the command line names, and exit."""
    source_dir = sys.argv[5]
    try:
        try:
            code = run(sys.argv[:], code_of)
        except ToolError as error:
            _fail(str(error))
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            _fail(_explain(error, source_dir))
        sys.exit(code)
    except SystemExit as end:
        if _leave is None:
            raise
        _leave(end)
