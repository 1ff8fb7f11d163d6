"""The templates, and how values become text in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context as JinjaContext
from markupsafe import Markup

from rye.plaintext import escaped
from rye.ui import values
from rye.ui.static_files import static_address


@cache
def environment() -> Environment:
    """The environment of all templates. What a tool wrote can only become text."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(static=static_address, csrf=_form_token)
    made.filters.update(
        moment=values.moment,
        ago=values.ago,
        duration=values.duration,
        size=values.size,
        short=values.short,
        outcome=values.outcome,
        address=values.address,
        part=values.part,
        capitalize_first=values.capitalize_first,
    )
    return made


@pass_context
def _form_token(context: JinjaContext) -> Markup:
    """The field that every form of an action must have."""
    return Markup('<input type="hidden" name="csrf" value="{}">').format(context["form_token"])


def _finalize(value: Any) -> Any:
    """Escape control characters and overrides of the direction in every text of a page."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return value if value.isprintable() else escaped(value)
    return "" if value is None else value
