"""HTTP requests with templates, credentials, retries and server-sent events."""

from lilux.exports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lilux.primitives.http_client.client import HttpClientPrimitive
    from lilux.primitives.http_client.result import HttpResult
    from lilux.primitives.http_client.retry import Timing
    from lilux.primitives.http_client.sinks import ReturnSink

__all__ = [
    "HttpClientPrimitive",
    "HttpResult",
    "ReturnSink",
    "Timing",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "HttpClientPrimitive": "lilux.primitives.http_client.client",
        "HttpResult": "lilux.primitives.http_client.result",
        "ReturnSink": "lilux.primitives.http_client.sinks",
        "Timing": "lilux.primitives.http_client.retry",
    },
)
