"""The package as a whole: its exports, its import cost, and no imports of rye."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lilux

SOURCES = Path(lilux.__file__).parent


def modules() -> list[str]:
    return sorted(
        ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES.rglob("*.py")
    )


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_no_module_mentions_rye_in_an_import() -> None:
    for path in SOURCES.rglob("*.py"):
        assert [name for name in imported_names(path) if name.split(".")[0] == "rye"] == []


def test_every_module_can_be_imported_where_rye_is_not_installed() -> None:
    script = f"""
import importlib, sys
sys.modules["rye"] = None
for module in {modules()!r}:
    importlib.import_module(module)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


PACKAGES = [
    "lilux",
    "lilux.primitives.http_client",
    "lilux.primitives.lockfile",
    "lilux.primitives.signing",
    "lilux.primitives.subprocess",
    "lilux.runtime.auth",
    "lilux.runtime.env_resolver",
]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_export_of_a_package_can_be_loaded(name: str) -> None:
    package = importlib.import_module(name)
    assert len(package.__all__) == len(set(package.__all__))
    for export in package.__all__:
        value = getattr(package, export)
        assert getattr(value, "__name__", export) == export
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("name", PACKAGES)
def test_type_checkers_see_the_same_exports(name: str) -> None:
    package = importlib.import_module(name)
    tree = ast.parse(Path(str(package.__file__)).read_text())
    seen = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "lilux.exports"
        for alias in node.names
    }
    assert seen == set(package.__all__)


def test_the_package_ships_its_types() -> None:
    assert (SOURCES / "py.typed").exists()


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("lilux", {"asyncio", "json", "httpx2", "cryptography", "msgspec", "jsonschema_rs"}),
        ("lilux.primitives.lockfile", {"asyncio", "cryptography", "httpx2", "msgspec"}),
        ("lilux.primitives.signing", {"asyncio", "cryptography", "httpx2"}),
        ("lilux.primitives.subprocess", {"cryptography", "httpx2", "msgspec", "jsonschema_rs"}),
        ("lilux.primitives.http_client", {"httpx2", "cryptography", "jsonschema_rs"}),
        ("lilux.runtime.env_resolver", {"asyncio", "httpx2", "dotenv", "cryptography"}),
        ("lilux.schemas.schema_validator", {"asyncio", "jsonschema_rs", "httpx2"}),
    ],
)
def test_importing_a_module_does_not_load_heavy_modules(module: str, forbidden: set[str]) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert forbidden.isdisjoint(done.stdout.split())


def test_every_module_is_small() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in SOURCES.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 400} == {}
