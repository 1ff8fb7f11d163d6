"""Errors that a client gets instead of a result."""

from __future__ import annotations

from typing import Any, Final

INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CONNECTION_CLOSED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022


class ProtocolError(Exception):
    """A request that is answered with an error, because the request itself is wrong.

    It is part of the protocol and does not leave it, so it is not part of the tree of errors.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
