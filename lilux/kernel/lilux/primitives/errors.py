"""The errors of Lilux, in one tree.

::

    LiluxError
    ├── ConfigurationError        the set-up is incomplete: a binary, a folder, a usable backend
    ├── HelperError               lilux-proc ended or broke the protocol; the call may be repeated
    ├── NotPreparedError          a prepared process cannot take a call, which has had no effect
    ├── IntegrityError            data that has no canonical form (also a ValueError)
    ├── KeyFileError              a key file that cannot be read, parsed or trusted
    ├── LockfileError             a lockfile that cannot be read or is malformed (also a ValueError)
    ├── SchemaError               a JSON Schema that is itself invalid (also a ValueError)
    └── AuthError
        ├── AuthenticationRequired    no usable token; the user has to authenticate
        └── RefreshError              the token endpoint refused or could not be reached

Expected failures of a job (an exit code, a timeout, HTTP 500) are results, not exceptions.
A caller's misuse of a signature stays a plain ``TypeError`` or ``ValueError``.
"""


class LiluxError(Exception):
    """The root of the tree. Its text is ``reason``, then ``hint``: what to do next."""

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.reason = reason
        self.hint = hint


class ConfigurationError(LiluxError):
    """The set-up is incomplete or unusable."""


class HelperError(LiluxError):
    """The helper process ended or broke the protocol during a call."""


class NotPreparedError(LiluxError):
    """A prepared process has ended or cannot take this call, which has had no effect."""


class IntegrityError(LiluxError, ValueError):
    """A value has no canonical JSON form; the message has the path to it."""


class KeyFileError(LiluxError):
    """A key file is missing, unreadable, malformed or accessible to other users."""


class LockfileError(LiluxError, ValueError):
    """A lockfile is malformed; the message has the file and the path to the field."""


class SchemaError(LiluxError, ValueError):
    """A JSON Schema is invalid, or refers to something outside of it."""


class AuthError(LiluxError):
    """The root of the errors about tokens of an :class:`~lilux.runtime.auth.AuthStore`."""


class AuthenticationRequired(AuthError):  # noqa: N818 - named in the specification
    """There is no usable token; the user has to authenticate."""


class RefreshError(AuthError):
    """A token has expired and could not be refreshed."""
