"""Lockfiles for tests: the documented one, and variants with changed fields."""

from typing import Any

from lilux.primitives.lockfile import Lockfile, LockfileRoot

# The example of the specification, verbatim.
DOCUMENTED = """\
{
  "lockfile_version": 1,
  "generated_at": "2026-01-30T12:00:00Z",
  "root": {
    "tool_id": "my_tool",
    "version": "1.0.0",
    "integrity": "abc123def456..."
  },
  "resolved_chain": [
    {
      "tool_id": "subprocess",
      "version": "1.0.0",
      "integrity": "def789ghi012...",
      "executor": "subprocess"
    }
  ],
  "registry": {
    "url": "https://registry.example.com",
    "fetched_at": "2026-01-30T12:00:00Z"
  }
}
"""


def document(**changes: Any) -> dict[str, Any]:
    """Return a lockfile as JSON data; a change to ``...`` removes the field."""
    whole = {
        "lockfile_version": 1,
        "generated_at": "2026-01-30T12:00:00Z",
        "root": {"tool_id": "a/tool", "version": "1.0.0", "integrity": "r" * 64},
        "resolved_chain": [
            {
                "item_id": "a/tool",
                "space": "project",
                "version": "1.0.0",
                "executor_id": "a/runtime",
                "integrity": "1" * 64,
            },
            {
                "item_id": "a/runtime",
                "space": "system",
                "version": "1.0.0",
                "executor_id": None,
                "integrity": "2" * 64,
            },
        ],
        "verified_deps": {"lib/a.py": "3" * 64},
    }
    return {key: value for key, value in (whole | changes).items() if value is not ...}


def entry(**changes: Any) -> dict[str, Any]:
    return {
        key: value
        for key, value in ({"item_id": "x", "integrity": "i"} | changes).items()
        if value is not ...
    }


def lockfile(**changes: Any) -> Lockfile:
    values: dict[str, Any] = {
        "lockfile_version": 1,
        "generated_at": "2026-01-30T12:00:00Z",
        "root": LockfileRoot("a/tool", "1.0.0", "r" * 64),
        "resolved_chain": [entry()],
    }
    return Lockfile(**(values | changes))
