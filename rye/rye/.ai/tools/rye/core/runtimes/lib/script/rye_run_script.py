# rye:signed:20261118T125305Z:284b0d1371c0ab82c6243ce705c831233cbcd1cee0b643f4c2b0adf8e779453e:hjb1eEr3M18k0rjTml_sJcxLs9NX5x7d03t-8WKENnYxP1opFrXQLvFYAB40zkRK07_oCMfGnziZWMNum5vpBg==:0cdadc7a57fefd2c
"""Start a script with the interpreter of its first line, and pass it the parameters.

Usage: ``python -I -S rye_run_script.py TOOL_PATH PROJECT_PATH INTERPRETER < call.json``, where
call.json has ``params``, an object as JSON text, and ``arguments``, a list or null.

INTERPRETER is the program of the first line as Rye found it; the arguments in the first line are
kept. Each parameter becomes the variable ``RYE_PARAM_<NAME>``: upper case, with an underscore for
each character that a variable name cannot contain. Text is unchanged, other values are JSON, null
leaves the variable unset, and so does a value of more than 64 KiB. The script replaces this process.

Without ``arguments``, the parameters are also one JSON object on the stdin of the script. With them,
stdin is empty, and each entry adds to the command line: a text is added as it is;
``{"name": N}`` adds the value of a parameter, or all values of a list; ``{"name": N, "option": "--n"}``
adds ``--n=value``, with ``"each": true`` for each value of a list; ``{"name": N, "flag": "--n"}``
adds ``--n`` if the value is true. With the variable RYE_STDIN, the size of call.json, what follows it
is the stdin of the script. Uses only the standard library, and runs on Python 3.9.
"""

# ruff: noqa: PTH123 - pathlib would add to the start of every call

from __future__ import annotations

import json
import os
import re
import sys

__version__ = "1.0.0"
__tool_type__ = "library"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "runtimes"
__tool_description__ = "Starts a script for script_runtime; not a tool itself"
CONFIG_SCHEMA = {"type": "object"}  # main is not called with parameters

# Linux limits a variable to 128 KiB.
LONGEST = 64 * 1024


def main(argv: list[str]) -> None:
    """Replace this process by the interpreter."""
    tool_path, project_path, interpreter = argv[1:4]
    with open(tool_path, "rb") as file:
        content = file.read()
    size = os.environ.pop("RYE_STDIN", None)
    call = json.loads(sys.stdin.buffer.read() if size is None else _read(int(size)))
    params = json.loads(call["params"])
    env = {**os.environ, **_variables(params), "RYE_PROJECT_PATH": project_path}
    spec = call["arguments"]
    if size is None:
        _offer(call["params"].encode() if spec is None else b"")
    command = [interpreter, *_arguments(content), tool_path, *_passed(spec or [], params)]
    try:
        os.execvpe(interpreter, command, env)  # noqa: S606 - no shell on purpose
    except FileNotFoundError:
        _fail(f"{interpreter} is not installed; install it")
    except OSError as error:
        _fail(f"{interpreter} cannot be started ({error.strerror}); check its permissions")


def _read(missing: int) -> bytes:
    """Read the parameters, and leave the rest of stdin to the script."""
    parts = []
    while missing > 0 and (part := os.read(0, missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _arguments(content: bytes) -> list[str]:
    """The arguments after the interpreter in the first line."""
    first = content.split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    words = first[2:].split() if first.startswith("#!") else []
    if words and words[0].rpartition("/")[2] == "env":
        words = [word for word in words[1:] if word != "-S"]
    return words[1:]


def _passed(spec: list[object], params: dict[str, object]) -> list[str]:
    """The command line of a script that takes arguments."""
    passed: list[str] = []
    waiting = 0  # positions without a value, which only matter if another one follows
    for one in spec:
        if isinstance(one, str):
            passed.append(one)
            continue
        name = one.get("name") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(name, str):
            _fail("config.arguments is malformed; each entry is a text or has a name")
            return []
        value = params.get(name)
        if "flag" in one:
            passed += [str(one["flag"])] if value is True else []
        elif "option" in one:
            option = str(one["option"])
            values = value if isinstance(value, list) and one.get("each") else [value]
            if isinstance(value, list) and not one.get("each"):
                passed += [option, *map(_text, value)] if value else []
            else:
                joint = "=" if option.startswith("--") else ""
                passed += [f"{option}{joint}{_text(each)}" for each in values if each is not None]
        elif value is None:
            waiting += 1
        else:
            passed += [""] * waiting
            waiting = 0
            passed += map(_text, value) if isinstance(value, list) else [_text(value)]
    return passed


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if "\0" in text:
        _fail("a parameter contains a NUL character, which an argument cannot hold; remove it")
    return text


def _variables(params: dict[str, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    seen: set[str] = set()
    for key, value in params.items():
        name = "RYE_PARAM_" + re.sub("[^A-Za-z0-9_]", "_", key).upper()
        if name in seen:
            _fail(f"two parameters have the same variable {name}; rename one of them")
        seen.add(name)
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        if "\0" in text:
            _fail("a parameter contains a NUL character, which a variable cannot hold; remove it")
        if value is not None and len(text.encode("utf-8", "surrogatepass")) <= LONGEST:
            found[name] = text
    return found


def _offer(text: bytes) -> None:
    """Make ``text`` the stdin, in memory if possible."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("rye-parameters")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.dup2(descriptor, 0)


def _fail(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.exit(1)


if __name__ == "__main__":
    main(sys.argv)
