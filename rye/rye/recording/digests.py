"""Digests of parameters and output: SHA-256, as hex digits of the raw bytes."""

from __future__ import annotations

from collections.abc import Mapping

from lilux.primitives.errors import IntegrityError
from lilux.primitives.integrity import canonical_json
from lilux.sha256 import sha256

from rye.recording.record import fragment_of
from rye.spaces.ids import HTTP_CLIENT, SUBPROCESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECRET = {"rye": "secret"}
"""Stands for the value of a parameter that the schema declares to be secret."""
ANSWER_OF_SERVER = "an answer of an MCP server"
_LARGE = 2 * 1024 * 1024
"""From this size on, OpenSSL saves more time than it takes to load."""


def digest(data: bytes) -> str:
    """Return the digest of bytes."""
    if len(data) < _LARGE:
        return sha256(data).hexdigest()
    from hashlib import sha256 as fast

    return fast(data).hexdigest()


_EMPTY = digest(b"")


def digest_of_description(description: str, schema: Mapping[str, Any] | None) -> str:
    """The digest of what an agent reads about a tool: ``{"description": …, "schema": …}``.

    Empty for a schema that is not JSON, which no agent is shown.
    """
    try:
        text = canonical_json({"description": description, "schema": schema})
    except IntegrityError:
        return ""
    return digest(text.encode("ascii"))


class Secrets:
    """Which parameters of a tool are secret: ``writeOnly: true``, or ``format: password``.

    A parameter is secret as a whole if anything in its schema is. In doubt it is: if something in
    the schema is secret, then so are the parameters that refer to definitions, and those that the
    schema does not name.
    """

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._names: set[str] = set()
        self._known: set[str] | None = None
        if schema and _marks(schema):
            self._known = set(schema.get("properties") or ())
            self._collect(schema)

    def covers(self, name: str) -> bool:
        """True if the value of this parameter is secret."""
        return self._known is not None and (name in self._names or name not in self._known)

    def masked(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters with :data:`SECRET` for each secret value.

        A short secret could be guessed from a digest, so it is not part of that either.
        """
        if self._known is None:
            return parameters
        return {name: SECRET if self.covers(name) else one for name, one in parameters.items()}

    def _collect(self, schema: object) -> None:
        if isinstance(schema, Mapping):
            properties = schema.get("properties")
            if isinstance(properties, Mapping):
                self._names.update(
                    [name for name, one in properties.items() if _marks(one) or _refers(one)]
                )
            for part in schema.values():
                self._collect(part)
        elif isinstance(schema, list | tuple):
            for part in schema:
                self._collect(part)


def _marks(schema: object) -> bool:
    """True if the schema, or anything in it, says that a value is secret."""
    if isinstance(schema, Mapping):
        if schema.get("writeOnly") is True or schema.get("format") == "password":
            return True
        return any(_marks(part) for part in schema.values())
    return isinstance(schema, list | tuple) and any(_marks(part) for part in schema)


def _refers(schema: object) -> bool:
    if isinstance(schema, Mapping):
        return "$ref" in schema or any(_refers(part) for part in schema.values())
    return isinstance(schema, list | tuple) and any(_refers(part) for part in schema)


def output_digests(kind: str, result: Any, *, keeps: bool) -> str:
    """Sizes and digests of the output, and the output itself if it is kept, without braces.

    ``kind`` is the id of a primitive, or :data:`ANSWER_OF_SERVER`.
    """
    if kind == SUBPROCESS:
        stdout = _stream(result.raw_stdout, result.stdout, result.truncated_stdout, keeps)
        stderr = _stream(result.raw_stderr, result.stderr, result.truncated_stderr, keeps)
        return f'"stdout":{{{stdout}}},"stderr":{{{stderr}}}'
    body = result.body if kind == HTTP_CLIENT else None
    if kind == ANSWER_OF_SERVER and (result.content or result.structured):
        body = {"content": result.content, "structured": result.structured}
    if body is None:
        return ""
    text = body if isinstance(body, str) else canonical_json(body)
    return f'"body":{{{_stream(None, text, 0, keeps)}}}'


def _stream(raw: bytes | None, text: str, left_out: int, keeps: bool) -> str:
    if not text and raw is None:
        data, sha256 = b"", _EMPTY
    else:
        data = text.encode("utf-8", "surrogatepass") if raw is None else raw
        sha256 = digest(data)
    # Neither of them needs an escape.
    described = f'"bytes":{len(data)},"sha256":"{sha256}"'
    if left_out:
        described += f',"left_out":{left_out}'
    if keeps:
        described += "," + fragment_of({"text": text} if raw is None else {"hex": data.hex()})
    return described


def without_output(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record without what was read from the output of the tool."""
    if "autopsy" in fields:
        fields = {**fields, "autopsy": _without_texts(fields["autopsy"])}
    if "denials" in fields:
        # Their targets, a path or a host, were read from it.
        hidden = [{"tried": one["tried"], "key": one["key"]} for one in fields["denials"]]
        fields = {**fields, "denials": hidden}
    return fields


def _without_texts(autopsy: Mapping[str, Any]) -> dict[str, Any]:
    """What the processes waited for, without what they printed and the values in their stacks."""
    kept = ("pid", "parent", "command", "state", "cpu_seconds", "memory_bytes", "waits_for")
    processes = [{name: one[name] for name in kept if name in one} for one in autopsy["processes"]]
    rest = {name: value for name, value in autopsy.items() if name not in ("processes", "output")}
    return {**rest, "processes": processes}
