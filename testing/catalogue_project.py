"""A project whose tools a catalogue lists, and the index that the catalogue keeps of them."""

from __future__ import annotations

import time
from pathlib import Path

from rye.catalogue.cache_file import CacheFile
from rye.catalogue.catalogue import Catalogue
from rye.catalogue.index import stamp_of_file
from rye.spaces.folders import is_settled, stamp_of
from rye.spaces.ids import primitive_ids
from rye.spaces.resolver import Resolver
from rye_project import Project

HELLO = """\
version: "1.2.0"
executor_id: rye/core/primitives/subprocess
tool_type: shell
category: greetings
description: says hello
config_schema: {type: object, properties: {name: {type: string}}}
annotations: {read_only: true}
"""


def write(project: Project, name: str, text: str = HELLO, space: str = "project") -> Path:
    """Write an unsigned tool."""
    return project.tool(name, text, space=space, signed=False)  # type: ignore[arg-type] # one of the names


def ids(project: Project) -> list[str]:
    """Return the ids that a new catalogue lists."""
    return [each.item_id for each in Catalogue(project.context).summaries()]


def settle(project: Project) -> None:
    """Wait until all files are old enough for the index to trust their stamps."""
    deadline = time.monotonic() + 10
    spaces = [project.path / ".ai", project.user / ".ai"]
    while True:
        paths = [path for space in spaces for path in (space / "tools").rglob("*")]
        folders = [str(path) for path in paths if path.is_dir()]
        folders += [str(space / "tools") for space in spaces]
        stamps = [stamp_of(folder) for folder in folders]
        stamps += [(stamp_of_file(str(path)) or (0,) * 5)[:4] for path in paths]
        if all(is_settled(stamp) for stamp in stamps):
            return
        assert time.monotonic() < deadline, "the files did not settle"
        time.sleep(0.005)


def cache_file(project: Project) -> CacheFile:
    """Return the index file of the project."""
    context = project.context
    return CacheFile(context.user_space, Resolver(context).spaces, primitive_ids())


def indexed(project: Project) -> CacheFile:
    """Write a valid index and return its file."""
    settle(project)
    Catalogue(project.context).summaries()
    return cache_file(project)


def plant(project: Project, old: bytes = b"says hello", new: bytes = b"from index") -> CacheFile:
    """Write a valid index whose content differs from the files."""
    file = indexed(project)
    content = file.read()
    assert content is not None
    file.write(content.replace(old, new))
    return file


def description(project: Project, item_id: str = "team/hello") -> str:
    """Return the description of an item in a new catalogue."""
    entries = {each.item_id: each for each in Catalogue(project.context).entries()}
    return entries[item_id].description
