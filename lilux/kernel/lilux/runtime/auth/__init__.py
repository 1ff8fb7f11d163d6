"""Access tokens of services: stored encrypted, refreshed once for all callers."""

from lilux.exports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lilux.runtime.auth.store import AuthStore

__all__ = [
    "AuthStore",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "AuthStore": "lilux.runtime.auth.store",
    },
)
