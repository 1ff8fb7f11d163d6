"""The parameters, results and content that this server uses, as they are on the wire.

Only what handlers read or write is described. Unknown fields of a client are ignored, so that a
client may be newer than this server.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: Final[tuple[LogLevel, ...]] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)


class Wire(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The base of all types: names in camel case, and no field that has its default value."""


class Implementation(Wire, frozen=True):
    """A program that speaks the protocol."""

    name: str
    version: str
    title: str | None = None


class ClientCapabilities(Wire, frozen=True):
    """What a client can do for the server."""

    elicitation: dict[str, Any] | None = None


class InitializeParams(Wire, frozen=True):
    """The first request of the handshake."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation


class NoParams(Wire, frozen=True):
    """Parameters that have no meaning."""


class ListToolsParams(Wire, frozen=True):
    """``cursor`` is where a page starts."""

    cursor: str | None = None


class CallToolParams(Wire, frozen=True):
    """Which tool to call."""

    name: str
    arguments: dict[str, Any] | None = None
    input_responses: dict[str, Any] | None = None
    """The answers to the questions of an :class:`InputRequiredResult`, by their keys."""
    request_state: str | None = None


class SetLevelParams(Wire, frozen=True):
    """The least severe log messages that a client wants."""

    level: LogLevel


class SubscriptionFilter(Wire, frozen=True):
    """The changes that a client wants to hear about; other kinds do not happen here."""

    tools_list_changed: bool | None = None


class ListenParams(Wire, frozen=True):
    """Opens a stream of changes."""

    notifications: SubscriptionFilter


class CancelledParams(Wire, frozen=True):
    """The request whose answer is not wanted any more."""

    request_id: int | str | None = None


class ToolAnnotations(Wire, frozen=True):
    """Hints about what a tool does."""

    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Tool(Wire, frozen=True):
    """The definition of a tool. An empty description is still sent."""

    name: str
    input_schema: dict[str, Any]
    description: str | None = None
    title: str | None = None
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations | None = None


class ListToolsResult(Wire, frozen=True):
    """One page of the list."""

    tools: list[Tool]
    next_cursor: str | None = None


class TextContent(Wire, frozen=True, tag_field="type", tag="text"):
    """Text for the model."""

    text: str


class ResourceLink(Wire, frozen=True, tag_field="type", tag="resource_link"):
    """Where to read more."""

    uri: str
    name: str
    mime_type: str | None = None


class ImageContent(Wire, frozen=True, tag_field="type", tag="image"):
    """A picture, in base64."""

    data: str
    mime_type: str


class AudioContent(Wire, frozen=True, tag_field="type", tag="audio"):
    """Sound, in base64."""

    data: str
    mime_type: str


class ReadResourceParams(Wire, frozen=True):
    """Which resource to read."""

    uri: str


class ResourceContents(Wire, frozen=True):
    """A part of a resource: ``text``, or ``blob`` in base64."""

    uri: str
    mime_type: str
    text: str | None = None
    blob: str | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class EmbeddedResource(Wire, frozen=True, tag_field="type", tag="resource"):
    """A file."""

    resource: ResourceContents


Content = TextContent | ResourceLink | ImageContent | AudioContent | EmbeddedResource


class ReadResourceResult(Wire, frozen=True):
    """What was read."""

    contents: list[ResourceContents]


class ResourceTemplate(Wire, frozen=True):
    """What the addresses of resources look like."""

    uri_template: str
    name: str
    description: str


class ListTemplatesResult(Wire, frozen=True):
    """All templates."""

    resource_templates: list[ResourceTemplate]


class ListResourcesResult(Wire, frozen=True):
    """The resources that are always there."""

    resources: list[Any]


class CallToolResult(Wire, frozen=True):
    """What a tool returned, or why it failed."""

    content: list[Content]
    is_error: bool
    structured_content: dict[str, Any] | None = None


class InputRequiredResult(Wire, frozen=True):
    """What the client has to ask its user before it sends the request again (2026-07-28)."""

    result_type: Literal["input_required"]
    input_requests: dict[str, Any]
    request_state: str


class ListenResult(Wire, frozen=True):
    """The end of a stream of changes."""

    meta: dict[str, Any] = msgspec.field(name="_meta")


class EmptyResult(Wire, frozen=True):
    """A request was carried out."""
