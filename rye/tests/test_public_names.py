"""The public names of ``rye``, and what importing it loads."""

import subprocess
import sys

import pytest

import rye
from rye import errors

HEAVY = (
    "asyncio", "cryptography", "httpx2", "importlib", "jsonschema_rs", "json", "msgspec", "typing",
    "yaml",
)  # fmt: skip


def test_all_is_sorted_and_every_name_exists() -> None:
    assert rye.__all__ == sorted(set(rye.__all__))
    assert [name for name in rye.__all__ if getattr(rye, name, None) is None] == []


def test_the_package_exports_the_executor_and_every_error() -> None:
    tree = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.RyeError) and name[0] != "_"
    }
    assert set(rye.__all__) == tree | {
        "BatchResult",
        "ChainElement",
        "Context",
        "ExecutionResult",
        "PrimitiveExecutor",
        "batch",
        "execute_blocking",
    }


def test_names_are_the_objects_of_their_modules() -> None:
    from rye.executor.run.execute import PrimitiveExecutor

    assert rye.PrimitiveExecutor is PrimitiveExecutor
    assert rye.LockTamperedError is errors.LockTamperedError


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert rye.__version__ == version("rye")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'rye' has no attribute 'Nonsense'$"):
        _ = rye.Nonsense


def test_dir_lists_names_that_are_not_loaded_yet() -> None:
    code = "import rye; assert set(rye.__all__) <= set(dir(rye))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_rye_loads_nothing_else() -> None:
    code = f"import sys, rye; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_importing_the_executor_does_not_load_optional_modules() -> None:
    code = (
        "import sys, rye.executor.run.execute\n"
        "heavy = ('cryptography', 'httpx2', 'jsonschema_rs', 'packaging.version', 'keyring')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
