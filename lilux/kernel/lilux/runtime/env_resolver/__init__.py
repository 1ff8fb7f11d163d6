"""The environment of a job, and the interpreters in it."""

from lilux.exports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lilux.runtime.env_resolver.resolver import EnvResolver

__all__ = [
    "EnvResolver",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "EnvResolver": "lilux.runtime.env_resolver.resolver",
    },
)
