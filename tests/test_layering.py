"""One direction only: rye → lilux → lilux-proc, and through public names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "lilux" / "kernel" / "lilux"
RYE = ROOT / "rye" / "rye"


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Each imported module with the name taken from it, if one is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def test_the_kernel_does_not_know_rye() -> None:
    for path in KERNEL.rglob("*.py"):
        assert [module for module, _ in imports(path) if module.split(".")[0] == "rye"] == []


def test_rye_takes_only_public_names_of_the_kernel() -> None:
    for path in RYE.rglob("*.py"):
        for module, name in imports(path):
            if module.split(".")[0] == "lilux":
                assert not any(part.startswith("_") for part in [*module.split("."), name]), path


# The two front doors and the catalogue that both read from stand at the ends of a call.
FRONT = ["catalogue", "mcp", "cli"]
STATIONS = ["spaces", "items", "trust", "executor", *FRONT]


@pytest.mark.parametrize("station", STATIONS)
def test_no_station_of_rye_reaches_ahead(station: str) -> None:
    later = {f"rye.{name}" for name in STATIONS[STATIONS.index(station) + 1 :]}
    for path in (RYE / station).rglob("*.py"):
        reached = {".".join(module.split(".")[:2]) for module, _ in imports(path)}
        assert reached & later == set(), f"{path.name} reaches ahead to {reached & later}"


ROOMS = ["caches", "chain", "locks", "config", "run", "inspection", "pinning"]
EXECUTOR = RYE / "executor"


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_of_the_executor_reaches_ahead(room: str) -> None:
    later = {f"rye.executor.{name}" for name in ROOMS[ROOMS.index(room) + 1 :]}
    for path in [EXECUTOR / f"{room}.py", *(EXECUTOR / room).rglob("*.py")]:
        if path.exists():
            reached = {".".join(module.split(".")[:3]) for module, _ in imports(path)}
            assert reached & later == set(), f"{path.name} reaches ahead to {reached & later}"


def test_every_room_of_the_executor_has_its_place() -> None:
    found = {path.stem for path in EXECUTOR.iterdir() if path.name != "__pycache__"}
    assert found - {"__init__", "integrity_verifier"} == set(ROOMS)


BEFORE = ["cache", "context", "errors", "formats", "ownership", "suggestions"]


@pytest.mark.parametrize("name", BEFORE)
def test_what_stands_before_the_stations_reaches_none_of_them(name: str) -> None:
    stations = {f"rye.{station}" for station in STATIONS}
    for path in [RYE / f"{name}.py", *(RYE / name).rglob("*.py")]:
        if path.exists():
            reached = {".".join(module.split(".")[:2]) for module, _ in imports(path)}
            assert reached & stations == set()


def test_every_module_outside_the_stations_has_its_place() -> None:
    doors = {"__init__", "__main__"}
    found = {
        path.stem
        for path in [*RYE.glob("*.py"), *(init.parent for init in RYE.glob("*/__init__.py"))]
    }
    assert found == {*BEFORE, *STATIONS, *doors}


def test_every_module_is_small() -> None:
    lengths = {
        path: len(path.read_text().splitlines())
        for path in [*RYE.rglob("*.py"), *ROOT.glob("lilux/proc/src/**/*.rs")]
    }
    assert {path.name: length for path, length in lengths.items() if length > 400} == {}
