"""What ``rye run TOOL --help`` prints: how the tool is called. Nothing is verified."""

from __future__ import annotations

from rye.catalogue.entry import CatalogueEntry
from rye.catalogue.example import example_parameters
from rye.catalogue.parameters import parameters_of
from rye.cli.output.printing import paragraph, plain
from rye.cli.output.show_page import example_call, examples_list, heading, parameter_list
from rye.errors import RyeError


def help_of(entry: CatalogueEntry) -> str:
    """Return the page. Raises :class:`RyeError` for a file that cannot be read."""
    if entry.fault:
        raise RyeError(entry.fault)
    name = plain(entry.item_id)
    parameters = parameters_of(entry.schema)
    own = [each for each in parameters if "." not in each.name]
    needed = [f"{plain(each.name)}=…" for each in own if each.required]
    if len(needed) < len(own) or entry.schema is None:
        needed.append("[KEY=VALUE]...")
    parts = [" ".join(["Usage: rye run", name, *needed])]
    if entry.description:
        parts.append(paragraph(entry.description, "  "))
    if parameters:
        title = heading("Parameters (KEY=VALUE or --KEY VALUE):")
        parts.append(f"{title}\n{parameter_list(parameters)}")
    if entry.stdin:
        parts.append("It reads stdin.")
    if entry.needs_user:
        parts.append("It asks questions, and runs only on a terminal.")
    if examples := _examples(entry):
        parts.append(f"{heading('Examples:')}\n{examples}")
    parts.append(
        f"Its signature, pin and permissions: rye show {name}\n"
        "The options of every call: rye run --help"
    )
    return "\n\n".join(parts)


def _examples(entry: CatalogueEntry) -> str:
    """The author's examples, or else a call that the schema accepts."""
    if entry.examples:
        return examples_list(entry)
    parameters = example_parameters(entry.schema)
    return "" if parameters is None else f"  {plain(example_call(entry, parameters))}"
