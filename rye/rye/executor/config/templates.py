"""Render authors' templates; the caller's text is always inserted literally.

``{name}`` means, in this order:

1. a value that Rye injects (``tool_path``, ``params_json`` …); it cannot be overridden, and it is
   an error if the chain has no value for it;
2. a parameter that the schema of the tool declares;
3. a value in ``config`` that the primitive does not read (the author's own value);
4. any other parameter, unless a schema declares all parameters;
5. a setting of the primitive in ``config``.

Values of 3 and 5 are templates themselves, up to three levels deep; a mapping or a list inside a
text becomes JSON after its values are rendered. All other values, and ``${VAR}``, are inserted
unchanged. An unknown ``{name}`` is left as it is. A declared parameter that is missing is ``None``
where it is the whole value, and an error inside a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from lilux.record import Record, field, replaced
from lilux.templating import (
    Placeholder,
    env_value,
    param_text,
    substitute,
    whole_placeholder,
)

from rye.errors import ConfigTemplateError, ParameterError
from rye.items.element import ChainElement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["value", "integer", "folder", "variable", "author", "structure", "unknown"]

PARAMS_JSON = "params_json"
ANCHOR_CWD = "__anchor_cwd"
TOOL_TYPE = "__tool_type"
COMPILED = "__compiled"
RESERVED = frozenset((
    "project_path", "user_space", "system_space", "tool_path", "tool_dir", "tool_parent",
    "source_dir", "anchor_path", "runtime_lib", "tool_integrity", ANCHOR_CWD, TOOL_TYPE, COMPILED,
    PARAMS_JSON,
))  # fmt: skip
"""The names that Rye injects, in this or another chain: never a parameter or an author's value."""
MAX_REFERENCE_DEPTH = 3
MAX_EXPANDED = 1024 * 1024
"""The length in characters that one text may grow to through references."""

# A schema with one of these may accept names that its `properties` do not list.
_OPEN_KEYWORDS = (
    "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas",
    "patternProperties",
)  # fmt: skip


class Names(Record, frozen=True, kw_only=True):
    """The meaning of placeholders. Values may be secret and are not part of the repr."""

    injected: Mapping[str, str] = field(repr=False)
    parameters: Mapping[str, Any] = field(repr=False)
    declared: frozenset[str] | None
    """The parameters in the tool's schema; ``None`` if the schema allows others."""
    env: Mapping[str, str] = field(repr=False)
    tool: str
    files: Mapping[str, str] = field(default_factory=dict)
    """The file that sets each key of ``config``, for error messages; ``""`` maps to the tool's."""
    author: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The values of ``config`` other than texts, by the names that refer to them."""
    masked: bool = False
    """True if the values of ``env`` are placeholders for display."""

    def origin(self, key: str = "") -> str:
        """The start of an error message about ``key``."""
        return origin(self.files, self.tool, key)

    def place(self, key: str) -> str:
        """Where ``key`` is set, as error messages name it."""
        return f"{self.origin(key)}: config.{key}"

    def is_parameter(self, name: str) -> bool:
        """True if ``{name}`` may mean a parameter that was passed."""
        if name in RESERVED:
            return False
        return name in self.parameters and (self.declared is None or name in self.declared)

    def is_missing(self, name: str) -> bool:
        """True if ``{name}`` is a declared parameter that was not passed."""
        return self.declared is not None and name in self.declared - self.parameters.keys()

    def kind(self, placeholder: Placeholder) -> Kind:
        """Where the value of a placeholder comes from; ``unknown`` if it has no meaning."""
        name = placeholder.name
        if placeholder.kind == "env":
            return "variable"
        if name in RESERVED:
            return "value" if name == PARAMS_JSON else "folder"
        if name in self.author:
            return (
                "structure" if isinstance(self.author[name], Mapping | list | tuple) else "author"
            )
        if not self.is_parameter(name):
            return "value" if self.is_missing(name) else "unknown"
        value = self.parameters[name]
        return "integer" if type(value) is int and value >= 0 else "value"

    def knows(self, placeholder: Placeholder) -> bool:
        """True if the placeholder has a meaning."""
        return self.kind(placeholder) != "unknown"

    def value(self, name: str, where: str) -> Any:
        """The value of ``{name}``, which must be a known name."""
        if name == PARAMS_JSON:
            return params_json(self.parameters, self.tool)
        if name in RESERVED:
            return self._injected(name, where)
        if name in self.author:
            # Without the name, or a value that contains its own name would recurse forever.
            others = {key: value for key, value in self.author.items() if key != name}
            return render_value(self.author[name], replaced(self, author=others), where)
        return self.parameters.get(name)

    def _injected(self, name: str, where: str) -> str:
        if name not in self.injected:
            raise ConfigTemplateError(
                f"{where}: {{{name}}} has no value in this chain",
                hint="declare the anchor or library that sets it, or remove the placeholder",
            )
        return self.injected[name]


def origin(files: Mapping[str, str], tool: str, key: str = "") -> str:
    """The file that sets ``key`` and the tool, as error messages name them."""
    file = files.get(key, files.get("", ""))
    return f"{file}: '{tool}'" if file else f"'{tool}'"


def declared_parameters(tool: ChainElement) -> frozenset[str] | None:
    """The parameters that the schema of a tool lists.

    ``None`` if there is no schema, or if it explicitly allows other names. A schema that only does
    not forbid other names gives them no meaning in a template.
    """
    schema = tool.metadata.config_schema
    if schema is None or schema.get("additionalProperties", False) is not False:
        return None
    if any(keyword in schema for keyword in _OPEN_KEYWORDS):
        return None
    return frozenset(schema.get("properties") or ())


def params_json(parameters: Mapping[str, Any], tool: str) -> str:
    """The parameters as ASCII JSON.

    Raises :class:`ParameterError`, which names the parameters that JSON cannot express.
    """
    try:
        return _json(dict(parameters))
    except (TypeError, ValueError, RecursionError):
        issues = [f"'{name}' cannot be written as JSON" for name in _not_json(parameters)]
        raise ParameterError(
            f"invalid parameters for '{tool}'",
            issues or ["they cannot be written as JSON"],
            hint="pass strings, finite numbers, booleans, lists and objects",
        ) from None


def expand_references(
    config: Mapping[str, Any], names: Names, settings: frozenset[str]
) -> tuple[dict[str, Any], Names]:
    """Replace references from one value of ``config`` to another.

    Returns the config, which is still a template, and ``names`` extended by those values that are
    not texts. ``settings`` are the keys that the primitive reads. Raises
    :class:`ConfigTemplateError` if values refer to each other in a cycle or too deeply.
    """
    expanded = dict(config)
    author = {key: value for key, value in config.items() if _means_author(key, names, settings)}
    if not mentions(config, [f"{{{key}}}" for key in author]):
        return expanded, names
    for _ in range(MAX_REFERENCE_DEPTH):
        expanded = _expand_each(expanded, author, names)
    for key, value in _expand_each(expanded, author, names).items():
        if value != expanded[key]:
            raise ConfigTemplateError(
                f"{names.place(key)}: its references form a cycle or are nested more than "
                f"{MAX_REFERENCE_DEPTH} deep",
                hint="replace a reference by its value",
            )
    structures = {key: expanded[key] for key in author if not isinstance(author[key], str)}
    return expanded, replaced(names, author=structures)


def render_value(template: Any, names: Names, where: str) -> Any:
    """Return a copy with every placeholder filled in once; a lone ``{name}`` keeps its type.

    Raises :class:`ConfigTemplateError` for a value that cannot be written as text.
    """
    if isinstance(template, str):
        if "{" not in template:
            return template
        whole = whole_placeholder(template)
        if whole is not None and whole.kind == "param":
            return names.value(whole.name, where) if names.knows(whole) else template
        return substitute(template, filler(names, where))
    if isinstance(template, Mapping):
        return {
            key: render_value(value, names, f"{where}.{key}") for key, value in template.items()
        }
    if isinstance(template, list | tuple):
        return [
            render_value(value, names, f"{where}[{index}]") for index, value in enumerate(template)
        ]
    return template


def placeholders(template: str, names: Names) -> list[Placeholder]:
    """The placeholders in a text that have a meaning."""
    found: list[Placeholder] = []

    def collect(placeholder: Placeholder) -> None:
        if names.knows(placeholder):
            found.append(placeholder)

    substitute(template, collect)
    return found


def as_text(value: Any, where: str, name: str = "") -> str:
    """The text of a value, for an argument or a variable.

    Raises :class:`ConfigTemplateError`, whose message does not contain the value.
    """
    try:
        text = param_text(name or where, value)
    except ValueError as error:
        raise ConfigTemplateError(f"{where}: {error}") from None
    if "\0" in text:
        raise ConfigTemplateError(
            f"{where}: contains a NUL character, which arguments and variables cannot hold",
            hint="remove it, or send the value on stdin",
        )
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ConfigTemplateError(
                f"{where}: contains an unpaired surrogate, which is not valid text",
                hint="pass valid Unicode",
            ) from None
    return text


def texts_in(value: Any) -> Iterator[str]:
    """The texts in a value of ``config``, at any depth; keys are not values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(one)


def mentions(value: Any, references: Sequence[str]) -> bool:
    """True if a text in ``value``, at any depth, contains one of ``references``."""
    texts = [text for text in texts_in(value) if "{" in text]
    return any(reference in text for text in texts for reference in references)


def filler(names: Names, where: str) -> Callable[[Placeholder], str | None]:
    """A function that returns the text of a placeholder; ``None`` if it has no meaning."""

    def fill(placeholder: Placeholder) -> str | None:
        if placeholder.kind == "env":
            return env_value(placeholder, names.env)
        if not names.knows(placeholder):
            return None
        require_given(placeholder.name, names, where)
        try:
            return param_text(placeholder.name, names.value(placeholder.name, where))
        except ValueError as error:
            raise ConfigTemplateError(f"{where}: {error}") from None

    return fill


def require_given(name: str, names: Names, where: str) -> None:
    """Raise :class:`ConfigTemplateError` for a declared parameter that is missing in a text."""
    if name not in RESERVED and name not in names.author and names.is_missing(name):
        raise ConfigTemplateError(
            f"{where}: parameter '{name}' is missing, and the text around it needs a value",
            hint="pass it, or make it required or give it a default in the schema",
        )


def _means_author(name: str, names: Names, settings: frozenset[str]) -> bool:
    """True if ``{name}``, the name of a value in ``config``, means that value."""
    if name in RESERVED:
        return False
    if names.declared is None:
        return name not in names.parameters or name not in settings
    if name not in names.declared:
        return True
    # The author's value is the default of a parameter that was not passed.
    return name not in names.parameters and name not in settings


def _expand_each(
    config: Mapping[str, Any], author: Mapping[str, Any], names: Names
) -> dict[str, Any]:
    return {key: _expand(value, key, author, names.place(key)) for key, value in config.items()}


def _expand(value: Any, inside: str, author: Mapping[str, Any], where: str) -> Any:
    """Expand one level; a value's reference to itself is left as it is."""
    if isinstance(value, Mapping):
        return {key: _expand(one, inside, author, where) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_expand(one, inside, author, where) for one in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = whole_placeholder(value)
    if whole is not None and whole.kind == "param":
        return author.get(whole.name, value) if whole.name != inside else value
    grown = len(value)

    def fill(placeholder: Placeholder) -> str | None:
        nonlocal grown
        text = author.get(placeholder.name) if placeholder.kind == "param" else None
        if not isinstance(text, str) or placeholder.name == inside:
            return None
        grown += len(text)
        if grown > MAX_EXPANDED:
            raise ConfigTemplateError(
                f"{where}: expands to more than {MAX_EXPANDED} characters",
                hint="shorten the values that it refers to",
            )
        return text

    return substitute(value, fill)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _not_json(parameters: Mapping[str, Any]) -> list[str]:
    names = []
    for name, value in parameters.items():
        try:
            _json(value)
        except (TypeError, ValueError, RecursionError):
            names.append(str(name))
    return names
