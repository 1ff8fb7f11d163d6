"""The parameters of a tool as the fields of a form, and the form as parameters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rye.catalogue.parameter_types import SchemaParameters
from rye.catalogue.parameters import parameters_of
from rye.catalogue.schema import SchemaView
from rye.catalogue.text_values import read_texts, refuse_constant
from rye.recording.digests import Secrets
from rye.ui.page import Form

PREFIX = "p."
"""What the names of the fields begin with, so that none is the token of the form."""
OTHERS = "others"
"""The field of parameters that the schema does not name, as a JSON object."""
_SHORT = 200
_PLAIN_FORMATS = frozenset(
    {"date", "date-time", "email", "hostname", "ipv4", "time", "uri", "uuid"}
)


class Field(NamedTuple):
    """One field."""

    name: str
    """The parameter."""
    control: str
    """``choice``, ``secret``, ``number``, ``line``, ``text`` or ``json``."""
    kind: str
    """The type in words."""
    description: str
    required: bool
    default: str
    choices: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    """The fields of an object, or of the elements of a list, in words."""
    value: str = ""
    """What was typed, or comes from an example."""
    fault: str = ""


class Sent(NamedTuple):
    """A form that was read."""

    parameters: dict[str, Any]
    texts: dict[str, str]
    """What was typed, by field. Secrets are left out, so that no page repeats them."""
    faults: dict[str, list[str]]
    """By field; an empty name is for the form as a whole."""


def fields_of(
    schema: Mapping[str, Any] | None,
    texts: Mapping[str, str] | None = None,
    faults: Mapping[str, Sequence[str]] | None = None,
) -> list[Field]:
    """Return a field for each parameter of the schema, the required ones first."""
    known = SchemaParameters(schema)
    view = SchemaView(schema or {})
    secrets = Secrets(schema)
    described = {one.name: one for one in parameters_of(schema)}
    properties = view.resolved(schema).get("properties")
    shapes = properties if isinstance(properties, Mapping) else {}
    found = []
    names = sorted(
        known.names(), key=lambda one: not (one in described and described[one].required)
    )
    for name in names:
        about = described.get(name)
        shape = view.resolved(shapes.get(name))
        control = "secret" if secrets.covers(name) else _control(name, shape, known)
        found.append(
            Field(
                name=name,
                control=control,
                kind="" if about is None else about.kind,
                description=known.type_of(name).description if about is None else about.description,
                required=about is not None and about.required,
                default="" if about is None or control == "secret" else _shown(about.default),
                choices=_choices(name, known) if control == "choice" else (),
                inner=tuple(
                    [
                        _inner(one.name, one.kind)
                        for one in described.values()
                        if _is_in(one.name, name)
                    ]
                ),
                value=(texts or {}).get(name, ""),
                fault="; ".join((faults or {}).get(name, ())),
            )
        )
    return found


def takes_others(schema: Mapping[str, Any] | None) -> bool:
    """True if parameters are possible that the schema does not name."""
    return SchemaParameters(schema).accepts("\0")


def read_form(form: Form, schema: Mapping[str, Any] | None) -> Sent:
    """Return the parameters that a form gives. An empty field is not given."""
    known = SchemaParameters(schema)
    secrets = Secrets(schema)
    sent = Sent({}, {}, {})
    for name in known.names():
        # Browsers send every line end as two characters.
        text = form.get(PREFIX + name).replace("\r\n", "\n")
        if not text:
            continue
        if not secrets.covers(name):
            sent.texts[name] = text
        try:
            sent.parameters[name] = read_texts(name, [text], known)
        except ValueError as error:
            sent.faults[name] = [str(error)]
    others = form.get(OTHERS).strip()
    if others and takes_others(schema):
        sent.texts[OTHERS] = others
        _read_others(others, sent)
    return sent


def texts_of(parameters: Mapping[str, Any], schema: Mapping[str, Any] | None) -> dict[str, str]:
    """Return what somebody would type for these parameters, without secrets."""
    known, secrets = SchemaParameters(schema).names(), Secrets(schema)
    texts = {
        name: _typed(parameters[name])
        for name in known
        if name in parameters and not secrets.covers(name)
    }
    others = {name: one for name, one in parameters.items() if name not in known}
    if others and takes_others(schema):
        texts[OTHERS] = json.dumps(others, ensure_ascii=False, indent=2)
    return texts


def faults_by_field(issues: Iterable[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Sort the messages of the validation by field; the empty name has those of none."""
    found: dict[str, list[str]] = {}
    for issue in issues:
        name = next((one for one in names if _is_about(issue, one)), "")
        text = issue.removeprefix("parameters.") if name else issue
        if issue == f"parameters: missing property '{name}'":
            text = "required"
        elif name and text.startswith(f"{name}: "):
            text = text.removeprefix(f"{name}: ")
        found.setdefault(name, []).append(text)
    return found


def _is_about(issue: str, name: str) -> bool:
    if issue == f"parameters: missing property '{name}'":
        return True
    starts = (f"parameters.{name}", f'parameters["{name}"]')
    return any(issue.startswith(one) and issue[len(one) : len(one) + 1] in ":.[" for one in starts)


def _read_others(text: str, sent: Sent) -> None:
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        sent.faults[OTHERS] = ["not JSON"]
        return
    if not isinstance(value, dict):
        sent.faults[OTHERS] = ["expected a JSON object"]
        return
    for name, one in value.items():
        if name in sent.parameters:
            sent.faults[OTHERS] = [f"{name!r} is given twice"]
        sent.parameters[name] = one


def _control(name: str, shape: Mapping[str, Any], known: SchemaParameters) -> str:
    kind = known.type_of(name)
    if kind.choices or kind.types == {"boolean"}:
        return "choice"
    if kind.types and kind.types <= {"integer", "number"}:
        return "number"
    if kind.types and not kind.types <= {"string", "integer", "number", "boolean", "null"}:
        return "json"
    longest = shape.get("maxLength")
    is_short = isinstance(longest, int) and longest <= _SHORT
    return "line" if is_short or shape.get("format") in _PLAIN_FORMATS else "text"


def _choices(name: str, known: SchemaParameters) -> tuple[str, ...]:
    return tuple(map(_typed, known.type_of(name).choices)) or ("true", "false")


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(default: str) -> str:
    """A default as somebody would type it."""
    return _typed(json.loads(default)) if default else ""


def _is_in(inner: str, name: str) -> bool:
    return inner.startswith((f"{name}.", f"{name}[]."))


def _inner(name: str, kind: str) -> str:
    return f"{name}: {kind}"
