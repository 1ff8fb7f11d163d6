"""PRIMITIVE_MAP: the two primitives of Lilux, and those of installed packages."""

from collections.abc import Callable
from pathlib import Path

import pytest
from lilux.primitives.http_client import HttpClientPrimitive
from lilux.primitives.subprocess import SubprocessPrimitive
from rye.errors import UnknownPrimitiveError
from rye.executor.run.execute import PrimitiveExecutor
from rye.executor.run.primitives import PRIMITIVE_MAP
from rye_project import HTTP_CLIENT, SUBPROCESS, Project

MODULE = """
from dataclasses import dataclass

@dataclass
class Answer:
    success: bool
    text: str
    error: str | None = None

class Shout:
    async def execute(self, config, params):
        if config.get("text") == "fail":
            return Answer(False, "", "too loud")
        return Answer(True, config["text"].upper())

class Silent:
    pass
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution with entry points for primitives."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def install(name: str, **points: str) -> None:
        site = tmp_path / "site"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"acme/{point} = {value}" for point, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[rye.primitives]", *lines, ""]))
        (site / f"{name}_module.py").write_text(MODULE)

    return install


def test_the_map_contains_the_classes_of_lilux() -> None:
    assert PrimitiveExecutor.PRIMITIVE_MAP[SUBPROCESS] is SubprocessPrimitive
    assert PrimitiveExecutor.PRIMITIVE_MAP[HTTP_CLIENT] is HttpClientPrimitive
    assert {SUBPROCESS, HTTP_CLIENT} <= set(PRIMITIVE_MAP)
    assert len(PRIMITIVE_MAP) == len(set(PRIMITIVE_MAP))
    assert "rye/core/primitives/nothing" not in PRIMITIVE_MAP
    with pytest.raises(KeyError):
        PRIMITIVE_MAP["rye/core/primitives/nothing"]


def test_an_installed_package_adds_a_primitive(tmp_path: Path, install: Install) -> None:
    install("alpha", shout="alpha_module:Shout")
    project = Project(tmp_path)
    project.yaml(
        "acme/shout",
        space="system",
        tool_type="primitive",
        executor_id=None,
        config_schema={"type": "object", "properties": {"text": {"type": "string"}}},
    )
    project.yaml("tools/hello", executor_id="acme/shout", config={"text": "{word}!"})
    result = project.run("tools/hello", {"word": "hello"})
    assert result.success, result.error
    assert result.data == {"success": True, "text": "HELLO!", "error": None}
    failed = project.run("acme/shout", {"text": "fail"})
    assert failed.error == "'acme/shout': too loud"
    assert failed.metadata["error_type"] == "PrimitiveFailed"


def test_a_project_file_cannot_replace_an_installed_primitive(
    tmp_path: Path, install: Install
) -> None:
    install("beta", shout="beta_module:Shout")
    project = Project(tmp_path)
    project.yaml("acme/shout", executor_id=SUBPROCESS, config={"command": "/bin/false"})
    result = project.run("acme/shout", {"text": "x"})
    assert [one["path"] for one in result.chain] == [None]


def test_two_packages_cannot_share_an_id(install: Install) -> None:
    install("gamma", shout="gamma_module:Shout")
    install("delta", shout="delta_module:Shout")
    with pytest.raises(UnknownPrimitiveError) as caught:
        PRIMITIVE_MAP["acme/shout"]
    assert str(caught.value) == (
        "the primitive 'acme/shout' is claimed by delta_module:Shout and by gamma_module:Shout; "
        "uninstall one of the packages"
    )


def test_an_entry_point_must_be_an_importable_primitive(install: Install) -> None:
    install("epsilon", gone="epsilon_module:Nothing", silent="epsilon_module:Silent")
    with pytest.raises(UnknownPrimitiveError) as caught:
        PRIMITIVE_MAP["acme/gone"]
    assert str(caught.value) == (
        "the primitive 'acme/gone' cannot be loaded from 'epsilon_module:Nothing' "
        "(AttributeError); correct or uninstall its package"
    )
    with pytest.raises(UnknownPrimitiveError) as caught:
        PRIMITIVE_MAP["acme/silent"]
    assert str(caught.value) == (
        "the primitive 'acme/silent' is 'epsilon_module:Silent', which is not a class with an "
        "async execute(config, params); correct or uninstall its package"
    )
