# rye:signed:20261118T125305Z:135ab991fa5dbaa87be26380de6c53542b62ebe670048014f6ab7d111eb78ab3:_uxdieHWu8c_O5Xv9J46rAaIY8PUFkHUNR-5WQyKEXbCYca4TzRycFYuB6CGcN9TBqVH31wMwXD0MK4XXPIyDw==:0cdadc7a57fefd2c
"""Start rye_run_tool.py from its compiled form, which is faster than compiling it in every call.

Usage: ``python -I rye_start.py TOOL_PATH PROJECT_PATH ANCHOR_PATH TOOL_TYPE SOURCE_DIR COMPILED_DIR``;
see rye_run_tool.py. This file is short, since Python compiles it in every call. Uses only the
standard library, and runs on Python 3.9.
"""

import sys

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Starts a Python tool for python_runtime; not a tool itself"
CONFIG_SCHEMA = {"type": "object"}


def code_of(path, compiled, name):  # type: ignore[no-untyped-def]
    """The code of a source file, in which tracebacks name the file ``name``.

    ``compiled`` is the path of its compiled form, which Rye made of the verified source, with this
    interpreter; empty if there is none.
    """
    if compiled:
        import _imp
        import marshal
        from _frozen_importlib_external import MAGIC_NUMBER  # importlib would have to be loaded

        try:
            with open(compiled, "rb") as file:  # noqa: PTH123 - pathlib would have to be loaded
                data = file.read()
            if data[:4] == MAGIC_NUMBER:
                code = marshal.loads(data[16:])  # noqa: S302 - Rye made it, and checked it
                _imp._fix_co_filename(code, name)
                return code
        except OSError:
            pass
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        return compile(file.read(), name, "exec", dont_inherit=True)


if __name__ == "__main__":
    runner = __file__.replace("rye_start.py", "rye_run_tool.py")
    compiled = sys.argv[6] and f"{sys.argv[6]}/lib/rye_run_tool.pyc"
    exec(code_of(runner, compiled, runner), globals())  # noqa: S102 - a verified file
    globals()["start"](code_of)
