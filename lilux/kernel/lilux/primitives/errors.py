"""Every error that Lilux raises, in one tree.

::

    LiluxError
    ├── ConfigurationError        the set-up lacks something: a binary, a folder, a usable backend
    ├── HelperError               lilux-proc broke off or spoke nonsense; the call may be made again
    ├── IntegrityError            data that has no canonical form (also a ValueError)
    ├── KeyFileError              a key file that cannot be read, parsed or trusted
    ├── LockfileError             a lockfile that is not what it should be (also a ValueError)
    ├── SchemaError               a JSON Schema that is itself invalid (also a ValueError)
    └── AuthError
        ├── AuthenticationRequired    no usable token, and no way to get one without the user
        └── RefreshError              the token endpoint refused or could not be reached

Expected failures of a job (an exit code, a timeout, HTTP 500) are results, not exceptions.
A caller's misuse of a signature stays a plain ``TypeError`` or ``ValueError``.
"""


class LiluxError(Exception):
    """The root of all errors that Lilux raises. Its text is ``message``, then ``hint``."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


class ConfigurationError(LiluxError):
    """The set-up lacks something; the message says what to install or pass."""


class HelperError(LiluxError):
    """The helper process ended or broke the protocol while a call was in flight."""


class IntegrityError(LiluxError, ValueError):
    """A value has no canonical JSON form; the message carries the path to it."""


class KeyFileError(LiluxError):
    """A key file is missing, unreadable, malformed or open to others."""


class LockfileError(LiluxError, ValueError):
    """A lockfile is malformed; the message carries the file and the path to the field."""


class SchemaError(LiluxError, ValueError):
    """A JSON Schema is itself invalid or refers to something that is not there."""


class AuthError(LiluxError):
    """The root of what an :class:`~lilux.runtime.auth.AuthStore` raises about tokens."""


class AuthenticationRequired(AuthError):  # noqa: N818 - the specification names it so
    """There is no usable token; the user has to authenticate."""


class RefreshError(AuthError):
    """A token has expired and could not be refreshed."""
