"""Imports go in one direction: rye → lilux → lilux-proc, and use public names only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KERNEL = ROOT / "lilux" / "kernel" / "lilux"
RYE = ROOT / "rye" / "rye"


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each imported module, with the imported name or an empty string."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def test_the_kernel_does_not_import_rye() -> None:
    for path in KERNEL.rglob("*.py"):
        assert [module for module, _ in imports(path) if module.split(".")[0] == "rye"] == []


def test_rye_imports_only_public_names_of_the_kernel() -> None:
    for path in RYE.rglob("*.py"):
        for module, name in imports(path):
            if module.split(".")[0] == "lilux":
                assert not any(part.startswith("_") for part in [*module.split("."), name]), path


# A package may import the packages before it in this list, but not those after it.
PACKAGES = ["spaces", "items", "trust", "permissions", "recording", "live", "closure", "warm"]
PACKAGES += [
    "upstream",
    "executor",
    "catalogue",
    "history",
    "authoring",
    "doctor",
    "batches",
    "mcp",
]
PACKAGES += ["ui", "cli"]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_package_of_rye_imports_a_later_one(package: str) -> None:
    later = {f"rye.{name}" for name in PACKAGES[PACKAGES.index(package) + 1 :]}
    for path in (RYE / package).rglob("*.py"):
        imported = {".".join(module.split(".")[:2]) for module, _ in imports(path)}
        assert imported & later == set(), f"{path.name} imports {imported & later}"


EXECUTOR_PARTS = [
    "caches",
    "chain",
    "locks",
    "config",
    "run",
    "inspection",
    "permitted",
    "learning",
    "checking",
    "pinning",
]
EXECUTOR = RYE / "executor"


@pytest.mark.parametrize("part", EXECUTOR_PARTS)
def test_no_part_of_the_executor_imports_a_later_one(part: str) -> None:
    later = {f"rye.executor.{name}" for name in EXECUTOR_PARTS[EXECUTOR_PARTS.index(part) + 1 :]}
    for path in [EXECUTOR / f"{part}.py", *(EXECUTOR / part).rglob("*.py")]:
        if path.exists():
            imported = {".".join(module.split(".")[:3]) for module, _ in imports(path)}
            assert imported & later == set(), f"{path.name} imports {imported & later}"


def test_every_part_of_the_executor_is_listed() -> None:
    found = {path.stem for path in EXECUTOR.iterdir() if path.name != "__pycache__"}
    assert found - {"__init__", "integrity_verifier"} == set(EXECUTOR_PARTS)


SHARED = ["cache", "context", "errors", "formats", "ownership", "plaintext", "suggestions"]


@pytest.mark.parametrize("name", SHARED)
def test_shared_modules_import_none_of_the_packages(name: str) -> None:
    packages = {f"rye.{package}" for package in PACKAGES}
    for path in [RYE / f"{name}.py", *(RYE / name).rglob("*.py")]:
        if path.exists():
            imported = {".".join(module.split(".")[:2]) for module, _ in imports(path)}
            assert imported & packages == set()


def test_every_module_and_package_of_rye_is_listed() -> None:
    entry_points = {"__init__", "__main__"}
    found = {
        path.stem
        for path in [*RYE.glob("*.py"), *(init.parent for init in RYE.glob("*/__init__.py"))]
    }
    assert found == {*SHARED, *PACKAGES, *entry_points}


def test_every_module_is_small() -> None:
    lengths = {
        path: len(path.read_text().splitlines())
        for path in [*RYE.rglob("*.py"), *ROOT.glob("lilux/proc/src/**/*.rs")]
    }
    assert {path.name: length for path, length in lengths.items() if length > 400} == {}
