"""Author's templates turned into values, by decisions that keep a caller's text literal.

What ``{name}`` means, first match first:

1. what Rye injects (``tool_path``, ``params_json`` …): nobody can take its place, and one that
   this chain has no value for is an error;
2. a parameter that the schema of the tool declares;
3. a value of the author's own in ``config``, one that the primitive does not read;
4. any other parameter, unless there is a schema, which then says all that there is;
5. a setting of the primitive in ``config``.

3 and 5 are the author's: their text is a template in turn, three levels deep; a mapping or a list
inside a text becomes JSON after its own values are filled. All else, and ``${VAR}``, is inserted
as it is. An unknown ``{name}`` stays. A declared parameter that was not given is ``None`` where it
is the whole value, and an error inside a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

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
    from typing import Any

PARAMS_JSON = "params_json"
ANCHOR_CWD = "__anchor_cwd"
RESERVED = frozenset((
    "project_path", "user_space", "system_space", "tool_path", "tool_dir", "tool_parent",
    "anchor_path", "runtime_lib", "tool_integrity", ANCHOR_CWD, PARAMS_JSON,
))  # fmt: skip
"""What Rye injects, or would inject for another chain: never a parameter or an author's value."""
ROUNDS = 3
MAX_EXPANDED = 1024 * 1024
"""Characters that the references of one text may grow to."""

# With one of these a schema may admit names that its `properties` do not list.
_OPEN_KEYWORDS = (
    "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas",
    "patternProperties",
)  # fmt: skip


class Names(Record, frozen=True, kw_only=True):
    """What placeholders stand for; values may be secrets and stay out of the repr."""

    injected: Mapping[str, str] = field(repr=False)
    parameters: Mapping[str, Any] = field(repr=False)
    declared: frozenset[str] | None
    """Names of parameters in the tool's schema; ``None`` if that leaves it open."""
    env: Mapping[str, str] = field(repr=False)
    tool: str
    author: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Values of ``config`` that are no text, for those names that mean them."""

    def is_parameter(self, name: str) -> bool:
        """Whether ``{name}`` may stand for a parameter that was given."""
        if name in RESERVED:
            return False
        return name in self.parameters and (self.declared is None or name in self.declared)

    def is_missing(self, name: str) -> bool:
        """Whether ``{name}`` is a parameter that was not given."""
        return self.declared is not None and name in self.declared - self.parameters.keys()

    def knows(self, placeholder: Placeholder) -> bool:
        """Whether the placeholder stands for something."""
        name = placeholder.name
        return (
            placeholder.kind == "env"
            or name in RESERVED
            or name in self.author
            or self.is_parameter(name)
            or self.is_missing(name)
        )

    def value(self, name: str) -> Any:
        """What ``{name}`` stands for, for a name that is known."""
        if name == PARAMS_JSON:
            return params_json(self.parameters, self.tool)
        if name in RESERVED:
            return self._injected(name)
        if name in self.author:
            # Without the name itself, or a value that mentions itself would never end.
            others = {key: value for key, value in self.author.items() if key != name}
            return render_value(self.author[name], replaced(self, author=others), name)
        return self.parameters.get(name)

    def _injected(self, name: str) -> str:
        if name not in self.injected:
            raise ConfigTemplateError(
                f"'{self.tool}': config: {{{name}}} has no value in this chain",
                hint="declare the anchor or the library that it stands for, or do not use it",
            )
        return self.injected[name]


def declared_parameters(tool: ChainElement) -> frozenset[str] | None:
    """The parameters that the schema of a tool lists.

    ``None`` if there is no schema, or one that admits other names expressly. A schema that merely
    does not forbid others does not make them mean anything in a template.
    """
    schema = tool.metadata.config_schema
    if schema is None or schema.get("additionalProperties", False) is not False:
        return None
    if any(keyword in schema for keyword in _OPEN_KEYWORDS):
        return None
    return frozenset(schema.get("properties") or ())


def params_json(parameters: Mapping[str, Any], tool: str) -> str:
    """The parameters as JSON in ASCII. Raises :class:`ParameterError` that names what has no
    JSON form."""
    try:
        return _json(dict(parameters))
    except (TypeError, ValueError, RecursionError):
        issues = [f"'{name}' cannot be written as JSON" for name in _not_json(parameters)]
        raise ParameterError(
            f"wrong parameters for '{tool}'",
            issues or ["they cannot be written as JSON"],
            hint="pass texts, finite numbers, booleans, lists and objects",
        ) from None


def expand_references(
    config: Mapping[str, Any], names: Names, settings: frozenset[str]
) -> tuple[dict[str, Any], Names]:
    """``config`` with references among its own values replaced, still a template, and ``names``
    that know those of its values that are no text.

    ``settings`` are the keys that the primitive reads. Raises :class:`ConfigTemplateError` for
    values that refer to each other in a circle or deeper than three levels.
    """
    expanded = dict(config)
    author = {key: value for key, value in config.items() if _means_author(key, names, settings)}
    if not mentions(config, [f"{{{key}}}" for key in author]):
        return expanded, names
    for _ in range(ROUNDS):
        expanded = _expand_each(expanded, author, names)
    for key, value in _expand_each(expanded, author, names).items():
        if value != expanded[key]:
            raise ConfigTemplateError(
                f"'{names.tool}': config.{key}: its references go in a circle or are nested more "
                f"than {ROUNDS} deep",
                hint="write the value itself in place of a reference",
            )
    structures = {key: expanded[key] for key in author if not isinstance(author[key], str)}
    return expanded, replaced(names, author=structures)


def render_value(template: Any, names: Names, where: str) -> Any:
    """A copy with every placeholder filled, once; a lone ``{name}`` keeps its type.

    Raises :class:`ConfigTemplateError` for a value that has no form as text.
    """
    if isinstance(template, str):
        if "{" not in template:
            return template
        whole = whole_placeholder(template)
        if whole is not None and whole.kind == "param":
            return names.value(whole.name) if names.knows(whole) else template
        return substitute(template, _filler(names, where))
    if isinstance(template, Mapping):
        return {
            key: render_value(value, names, f"{where}.{key}") for key, value in template.items()
        }
    if isinstance(template, list | tuple):
        return [
            render_value(value, names, f"{where}[{index}]") for index, value in enumerate(template)
        ]
    return template


def render_script(template: str, names: Names, where: str) -> str:
    """Text that a POSIX shell will parse, every value quoted for the place where it stands."""
    from rye.executor.config.quoting import fill_script

    return fill_script(template, _filler(names, where), where)


def embedded(template: Any, names: Names) -> Placeholder | None:
    """The first placeholder whose value would become a part of the text, not the whole of it."""
    if not isinstance(template, str) or whole_placeholder(template) is not None:
        return None
    return next(iter(placeholders(template, names)), None)


def placeholders(template: str, names: Names) -> list[Placeholder]:
    """Those of a text that stand for something."""
    found: list[Placeholder] = []

    def collect(placeholder: Placeholder) -> None:
        if names.knows(placeholder):
            found.append(placeholder)

    substitute(template, collect)
    return found


def as_text(value: Any, where: str, name: str = "") -> str:
    """A value as a command line or a variable can hold it.

    Raises :class:`ConfigTemplateError` without repeating the value.
    """
    try:
        text = param_text(name or where, value)
    except ValueError as error:
        raise ConfigTemplateError(f"{where}: {error}") from None
    if "\0" in text:
        raise ConfigTemplateError(
            f"{where}: contains a NUL character, which no argument or variable can hold",
            hint="remove it, or send the value by stdin",
        )
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ConfigTemplateError(
                f"{where}: contains half of a surrogate pair, which is no text",
                hint="pass valid Unicode",
            ) from None
    return text


def mentions(value: Any, references: Sequence[str]) -> bool:
    """Whether a text in ``value``, however deep, holds one of ``references``."""
    if isinstance(value, str):
        return "{" in value and any(reference in value for reference in references)
    if isinstance(value, Mapping):
        return any(mentions(one, references) for one in value.values())
    return isinstance(value, list | tuple) and any(mentions(one, references) for one in value)


def _filler(names: Names, where: str) -> Callable[[Placeholder], str | None]:
    def fill(placeholder: Placeholder) -> str | None:
        if placeholder.kind == "env":
            return env_value(placeholder, names.env)
        if not names.knows(placeholder):
            return None
        require_given(placeholder.name, names, where)
        try:
            return param_text(placeholder.name, names.value(placeholder.name))
        except ValueError as error:
            raise ConfigTemplateError(f"{where}: {error}") from None

    return fill


def require_given(name: str, names: Names, where: str) -> None:
    """Raises :class:`ConfigTemplateError` for a declared parameter that is missing in a text."""
    if name not in RESERVED and name not in names.author and names.is_missing(name):
        raise ConfigTemplateError(
            f"{where}: the parameter '{name}' was not given, and the text around it needs one",
            hint="give it, or let the schema require it or have a default for it",
        )


def _means_author(name: str, names: Names, settings: frozenset[str]) -> bool:
    """Whether ``{name}``, the name of a value in ``config``, means that value."""
    if name in RESERVED:
        return False
    if names.declared is None:
        return name not in names.parameters or name not in settings
    if name not in names.declared:
        return True
    # For a parameter that was not given, a value of the author's own is the default.
    return name not in names.parameters and name not in settings


def _expand_each(
    config: Mapping[str, Any], author: Mapping[str, Any], names: Names
) -> dict[str, Any]:
    return {
        key: _expand(value, key, author, f"'{names.tool}': config.{key}")
        for key, value in config.items()
    }


def _expand(value: Any, inside: str, author: Mapping[str, Any], where: str) -> Any:
    """One round; a reference inside the value that it means is left alone."""
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
                f"{where}: grows beyond {MAX_EXPANDED} characters", hint="shorten what it refers to"
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
