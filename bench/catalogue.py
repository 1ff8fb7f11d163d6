"""Listing tools with 1,000 against 10 in a project, and searching 10,000.

`rye list` is timed as a whole process, with its index on disk; the two projects alternate. A search
is timed in this process, on a catalogue that has checked its files, and compared with a start of
the interpreter in alternation, so that the load of the machine cancels out. The duration of the
first list, which reads every file, and of the check of all files are reported.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from rye.catalogue.catalogue import Catalogue
from rye.catalogue.search import search
from rye.context import Context

from bench.programs import RYE, installed_environ
from bench.table import Report, Row, alternating_medians

LIST_LIMIT = 2.0
SEARCH_LIMIT = 3.0
ROUNDS = 25
VERBS = ("read", "write", "convert", "count", "fetch", "merge", "rename", "send", "sort", "watch")
THINGS = ("file", "image", "invoice", "mail", "note", "page", "photo", "table", "ticket", "video")

TOOL = '''"""A tool."""

__version__ = "1.{number}.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_runtime"
__category__ = "{thing}"
__tool_description__ = "Can {verb} a {thing} of shop number {number}, and reports what was done."

CONFIG_SCHEMA = {{
    "type": "object",
    "properties": {{
        "{thing}": {{"type": "string", "description": "which {thing} to {verb}"}},
        "limit": {{"type": "integer", "minimum": 1, "default": 10, "description": "how many"}},
        "dry_run": {{"type": "boolean", "default": False, "description": "only report"}},
    }},
    "required": ["{thing}"],
}}


def main(**parameters: object) -> object:
    return parameters
'''
QUERIES = ("read invoice", "mail", "the shop", "dry run of a video", "invioce", "shop_42/tool_421")


def project(root: Path, count: int) -> Context:
    """Create a project with that many tools, ten per folder, and an empty user space."""
    (root / "user").mkdir(parents=True)
    for number in range(count):
        folder = root / "project" / ".ai" / "tools" / f"shop_{number // 10}"
        folder.mkdir(parents=True, exist_ok=True)
        verb, thing = VERBS[number % 10], THINGS[number // 10 % 10]
        text = TOOL.format(number=number, verb=verb, thing=thing)
        (folder / f"{verb}_{thing}_{number}.py").write_text(text)
    return Context.from_machine(root / "project", root / "user")


def listed(context: Context) -> float:
    """Return the duration of one `rye list` in milliseconds."""
    command = [RYE, "-C", str(context.project_path), "list"]
    started = time.perf_counter()
    done = subprocess.run(
        command,
        env=installed_environ(context.user_space),
        stdout=subprocess.PIPE,
        check=True,
    )
    taken = (time.perf_counter() - started) * 1000
    assert done.stdout.count(b"\n") >= 10
    return taken


def list_row(few: Context, many: Context) -> Row:
    first = listed(many)
    listed(few)
    time.sleep(0.1)  # a file that was just written would be read again
    listed(few), listed(many)
    pairs = [(listed(few), listed(many)) for _ in range(ROUNDS)]
    ten = statistics.median([pair[0] for pair in pairs])
    thousand = statistics.median([pair[1] for pair in pairs])
    detail = f"{thousand:.0f} / {ten:.0f} ms; first run {first:.0f} ms"
    return Row("rye list, 1,000 tools ÷ 10", thousand / ten, LIST_LIMIT, detail=detail)


def start_python() -> None:
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def searches(context: Context) -> Report:
    catalogue = Catalogue(context)
    catalogue.summaries()
    index = catalogue._fresh()
    (check,) = alternating_medians(10, catalogue.summaries)
    rows = []
    for words in QUERIES:
        query = partial(search, index, words, 10)
        taken, start = alternating_medians(ROUNDS, query, start_python)
        detail = f"{taken / 1000:.0f} / {start / 1000:.0f} ms; first hit {query()[0].entry.item_id}"
        what = f"{words!r} in 10,000 ÷ python"
        rows.append(Row(what, taken / start, SEARCH_LIMIT, detail=detail))
    return Report(rows, notes=[f"check of 10,000 files: {check / 1000:.0f} ms"])


def measure() -> Report:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        listing = list_row(project(root / "few", 10), project(root / "many", 1000))
        found = searches(project(root / "most", 10_000))
    return replace(found, rows=[listing, *found.rows])
