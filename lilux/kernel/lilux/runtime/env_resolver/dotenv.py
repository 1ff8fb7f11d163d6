"""The ``.env`` file of a project: ``KEY=value`` lines, taken literally.

A ``.env`` is part of a checkout, so it may set values but not choose code that every process
loads: loader variables in it are ignored and logged.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from lilux.files.bounded_read import FileTooLargeError, NotRegularFileError, read_bounded
from lilux.primitives.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dotenv.parser import Binding

MAX_BYTES = 1024 * 1024
# So that a file with half a million malformed lines does not fill the log.
_MAX_NOTICES = 20

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_EXPORT_LINE = r"\s*export\s"
# Each of these makes a program load or start something that the file chooses. No such list is
# complete. A caller that works in other people's checkouts takes only the names that it needs, with
# this list as a second line of defence.
_LOADER_NAME = (
    r"(?:LD_|DYLD_).*|GCONV_PATH|GLIBC_TUNABLES"
    r"|BASH_ENV|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND"
    r"|PYTHON(?:STARTUP|PATH|HOME|USERBASE|PLATLIBDIR|PYCACHEPREFIX|BREAKPOINT|EXECUTABLE|INSPECT)"
    r"|NODE_(?:OPTIONS|PATH|REPL_EXTERNAL_MODULE)|(?:PERL5|LUA_).*|PERLLIB|RUBYOPT|RUBYLIB|GEM_.*"
    r"|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH"
    r"|GIT_(?:SSH|CONFIG|ALTERNATE).*|GIT_(?:EXEC_PATH|EXTERNAL_DIFF|PAGER|EDITOR|SEQUENCE_EDITOR)"
    r"|GIT_(?:ASKPASS|PROXY_COMMAND|TEMPLATE_DIR|DIR|COMMON_DIR|WORK_TREE)|SSH_ASKPASS"
    r"|(?:UV|PIP|NPM_CONFIG)_.*|PAGER|MANPAGER|EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE"
    # Locations of settings, through which programs such as git start other programs.
    r"|HOME|XDG_(?:CONFIG|DATA)_(?:HOME|DIRS)|ZDOTDIR|GNUPGHOME|SHELL"
    r"|OPENSSL_(?:CONF|ENGINES|MODULES)|MAKEFILES|MAKEFLAGS|(?:CARGO|RUSTUP)_HOME|RUSTC(?:_.*)?"
)


def read_dotenv(path: Path) -> dict[str, str]:
    """Return the variables of a ``.env`` file; empty if there is no such file.

    Comments and ``export`` lines are skipped, quotes are removed, ``${…}`` is not expanded. Raises
    :class:`ConfigurationError` if the file cannot be read, is not UTF-8 or is larger than 1 MiB.
    """
    return DotenvFile(path).variables()


class DotenvFile:
    """A ``.env`` file that is read for each job, but parsed and logged only when it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Content and variables in one tuple: threads that share this object never mix two versions.
        self._parsed: tuple[bytes | None, dict[str, str]] = (b"", {})

    def variables(self) -> dict[str, str]:
        """Like :func:`read_dotenv`, but the same dict until the file changes; do not modify it."""
        content = self._read()
        known, variables = self._parsed
        if content != known:
            variables = {} if content is None else self._parse(content)
            self._parsed = (content, variables)
        return variables

    def _read(self) -> bytes | None:
        try:
            return read_bounded(self.path, MAX_BYTES)
        except (FileNotFoundError, NotADirectoryError, NotRegularFileError):
            return None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigurationError(
                f"{self.path} cannot be read: {reason}", hint="fix or remove it"
            ) from error
        except FileTooLargeError as error:
            raise ConfigurationError(
                f"{self.path} is larger than {MAX_BYTES} bytes",
                hint="keep only KEY=value lines in it",
            ) from error

    def _parse(self, content: bytes) -> dict[str, str]:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"{self.path} is not UTF-8 text", hint="fix or remove it"
            ) from error
        return parse_dotenv(text, str(self.path))


def parse_dotenv(text: str, source: str) -> dict[str, str]:
    """Return the variables in ``text``; each ignored line is logged with its number."""
    import logging

    from dotenv.parser import parse_stream

    log = logging.getLogger(__name__)
    variables: dict[str, str] = {}
    ignored: list[str] = []
    for binding in parse_stream(io.StringIO(text)):
        name, value = binding.key, binding.value
        if re.match(_EXPORT_LINE, binding.original.string):
            continue
        if name is None and not binding.error:
            continue
        if name is None or value is None or not re.fullmatch(_NAME, name) or "\0" in value:
            ignored.append(f"line {_first_line(binding)} is not KEY=value; ignored")
        elif re.fullmatch(_LOADER_NAME, name, re.IGNORECASE):
            ignored.append(f"{name} is ignored: it controls what processes load")
        else:
            variables[name] = value
    for notice in ignored[:_MAX_NOTICES]:
        log.warning("%s: %s", source, notice)
    if len(ignored) > _MAX_NOTICES:
        log.warning("%s: %d more lines are ignored", source, len(ignored) - _MAX_NOTICES)
    return variables


def _first_line(binding: Binding) -> int:
    text = binding.original.string
    blank = text[: len(text) - len(text.lstrip())]
    return binding.original.line + len(blank.splitlines())
