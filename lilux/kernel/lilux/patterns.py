"""Regular expressions that are compiled when they are first used.

Compiling one takes up to milliseconds, and a program that makes one call needs few of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any, AnyStr

    def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """``re.compile(text, flags)``, later."""
else:

    class pattern:  # noqa: N801 - called like the function that type checkers see
        """``re.compile(text, flags)``, later."""

        def __init__(self, text: Any, flags: int = 0) -> None:
            self._compiled_from = (text, flags)

        def __getattr__(self, name: str) -> Any:
            import re

            found = getattr(re.compile(*self._compiled_from), name)
            # From now on the attribute is simply there.
            setattr(self, name, found)
            return found
