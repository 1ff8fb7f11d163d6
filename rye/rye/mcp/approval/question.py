"""What the user reads before a tool runs: the tool, its parameters, its permissions, its signer.

The values of parameters come from the agent. They are JSON on one line each, without characters
that a terminal or a page would not show as they are, so that a value cannot look like another part
of the question. A value that is cut says how much is missing. A tool may accept any name: one that
is not plain is JSON too, and the names of the schema come first, so that others do not hide them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rye.context import Context
from rye.executor.run.prepare import PreparedCall
from rye.items.element import ChainElement
from rye.items.permissions import joined
from rye.permissions.chain import chain_permissions
from rye.permissions.settings import UserSettings
from rye.permissions.words import explained, in_short
from rye.recording.digests import SECRET, Secrets

_MAX_VALUE = 1500
_MAX_NAME = 100
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_MAX_PARAMETERS = 30
_MAX_DESCRIPTION = 300


def question_about(call: PreparedCall, context: Context) -> str:
    """Return the text of the question."""
    tool = call.chain[0]
    described = " ".join(tool.metadata.description.split())[:_MAX_DESCRIPTION]
    lines = [f"May the agent run {tool.item_id}?"]
    if described:
        lines.append(_visible(described))
    lines += ["", "Parameters:", *_parameters(call), "", "It may:"]
    lines += [f"  {line}" for line in _permissions(call, context)]
    lines += ["", f"Signed by: {_signer(tool, context)}"]
    return "\n".join(lines)


def _parameters(call: PreparedCall) -> Iterator[str]:
    schema = call.chain[0].metadata.config_schema
    masked = Secrets(schema).masked(call.parameters)
    properties = (schema or {}).get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    if not masked:
        yield "  none"
    in_order = sorted(masked, key=lambda name: name not in declared)
    for name in in_order[:_MAX_PARAMETERS]:
        value = masked[name]
        shown = "(secret, not shown)" if value is SECRET else _value(value)
        plain = _PLAIN_NAME.fullmatch(name)
        yield f"  {name if plain else _value(name, _MAX_NAME)}: {shown}"
    rest = len(masked) - _MAX_PARAMETERS
    if rest > 0:
        yield f"  and {rest} more, which are not shown"


def _value(value: Any, limit: int = _MAX_VALUE) -> str:
    text = _visible(json.dumps(value, ensure_ascii=False, default=str))
    missing = len(text) - limit
    if missing <= 0:
        return text
    half = limit // 2
    return f"{text[:half]} … ({missing} characters are not shown) … {text[-half:]}"


def _permissions(call: PreparedCall, context: Context) -> Iterator[str]:
    tool = call.chain[0]
    own = chain_permissions(call.chain)
    if own is None:
        yield in_short(None)
        return
    granted = UserSettings(context).current().granted(tool.item_id, tool.signer)
    words: Mapping[str, str] = dict(explained(joined([own, *granted])))
    for name in ("reads", "writes", "network", "programs"):
        yield _visible(f"{name}: {words[name]}")


def _signer(tool: ChainElement, context: Context) -> str:
    if tool.path is None:
        return "part of Rye"
    from rye.trust.store import TrustStore

    store = TrustStore(context)
    entry = store.find(tool.signer, store.place(tool.path))
    return f"{_visible(entry.owner)} ({tool.signer})" if entry and entry.owner else tool.signer


def _visible(text: str) -> str:
    """Escape characters that are not printable: line breaks, controls, changes of direction."""
    return "".join([one if one.isprintable() else ascii(one)[1:-1] for one in text])
