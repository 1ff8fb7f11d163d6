"""Version managers: their interpreters are found without running them."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from found_interpreters import interpreter, program
from lilux.primitives.errors import ConfigurationError


def managed(manager: str, version: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "version_manager", "manager": manager, "version": version, **more}


class Layout(NamedTuple):
    """The folders of a manager."""

    manager: str
    variable: str
    folder: str
    program: str
    more: dict[str, str]


LAYOUTS = [
    Layout("pyenv", "PYENV_ROOT", ".pyenv", "versions/{}/bin/python", {}),
    Layout("nvm", "NVM_DIR", ".nvm", "versions/node/v{}/bin/node", {}),
    Layout("rbenv", "RBENV_ROOT", ".rbenv", "versions/{}/bin/ruby", {}),
    Layout("asdf", "ASDF_DATA_DIR", ".asdf", "installs/nodejs/{}/bin/node", {"tool": "nodejs"}),
    Layout(
        "mise", "MISE_DATA_DIR", ".local/share/mise", "installs/node/{}/bin/node", {"tool": "node"}
    ),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.manager)
def test_a_manager_finds_the_requested_version(layout: Layout, home: Path) -> None:
    def path(version: str) -> Path:
        return home / layout.folder / layout.program.format(version)

    def found(version: str) -> str | None:
        rule = managed(layout.manager, version, **layout.more)
        return interpreter(None, {"HOME": str(home)}, rule)

    for version in ("3.9.18", "3.11.2", "3.11.10", "3.11.11rc1", "3.12.0rc2", "3.110.0", "4.0.0"):
        program(path(version))
    path("3.11.99").parent.mkdir(parents=True)  # left behind by a failed installation
    assert found("3.11.2") == str(path("3.11.2"))
    assert found("v3.11.2") == str(path("3.11.2"))
    assert found("3.11") == str(path("3.11.10"))
    assert found("3") == str(path("3.110.0"))
    assert found("3.12") == found("3.12.0rc2") == str(path("3.12.0rc2"))
    assert found("3.1") is None
    assert found("5") is None


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.manager)
def test_a_managers_variable_selects_its_folder(
    layout: Layout, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    moved = program(home / "moved" / layout.program.format("1.2.3"))
    program(home / layout.folder / layout.program.format("1.2.3"))
    rule = managed(layout.manager, "1.2.3", **layout.more)
    environ = {"HOME": str(home), layout.variable: str(home / "moved")}
    assert interpreter(None, environ, rule) == moved
    environ[layout.variable] = str(home / "gone")
    assert interpreter(None, environ, rule) is None
    environ[layout.variable] = "moved"
    assert interpreter(None, environ, rule) is None


def test_a_release_takes_precedence_over_its_candidates(home: Path) -> None:
    program(home / ".pyenv/versions/3.13.0rc3/bin/python")
    final = program(home / ".pyenv/versions/3.13.0/bin/python")
    program(home / ".pyenv/versions/3.13-dev/bin/python")
    assert interpreter(None, {"HOME": str(home)}, managed("pyenv", "3.13")) == final


def test_an_integer_is_a_version_and_a_float_is_not(home: Path) -> None:
    node = program(home / ".nvm/versions/node/v20.1.0/bin/node")
    rule = {"type": "version_manager", "manager": "nvm", "version": 20}
    assert interpreter(None, {"HOME": str(home)}, rule) == node
    with pytest.raises(ConfigurationError) as caught:
        interpreter(None, {}, {**rule, "version": 3.10})
    assert str(caught.value) == (
        "env_config.interpreter.version: expected a string, got float; quote it"
    )


def test_pyenv_without_a_version_reads_variable_then_project_then_global(
    project: Path, home: Path
) -> None:
    paths = {v: program(home / f".pyenv/versions/{v}/bin/python") for v in ("3.9.1", "3.10.1", "x")}
    environ = {"HOME": str(home)}
    assert interpreter(project, environ, managed("pyenv")) is None
    (home / ".pyenv/version").write_text("3.9.1\n")
    assert interpreter(project, environ, managed("pyenv")) == paths["3.9.1"]
    (project / ".python-version").write_text("# pinned\n9.9.9\n3.10\n")
    assert interpreter(project, environ, managed("pyenv")) == paths["3.10.1"]
    assert interpreter(project, {**environ, "PYENV_VERSION": "x"}, managed("pyenv")) == paths["x"]


def test_a_pinned_version_that_is_not_installed_is_not_replaced_by_the_global_one(
    project: Path, home: Path
) -> None:
    program(home / ".pyenv/versions/3.9.1/bin/python")
    (home / ".pyenv/version").write_text("3.9.1\n")
    (project / ".python-version").write_text("3.12\n")
    rule = managed("pyenv", fallback="/fallback/python")
    assert interpreter(project, {"HOME": str(home)}, rule) == "/fallback/python"


def test_nvm_follows_aliases(project: Path, home: Path) -> None:
    nvm = home / ".nvm"
    paths = {
        v: program(nvm / f"versions/node/v{v}/bin/node") for v in ("18.20.4", "20.9.0", "22.1.0")
    }
    (nvm / "alias/lts").mkdir(parents=True)
    (nvm / "alias/lts/*").write_text("lts/iron\n")
    (nvm / "alias/lts/iron").write_text("v20.9.0\n")
    (nvm / "alias/default").write_text("18\n")
    (nvm / "alias/loop").write_text("loop\n")
    environ = {"HOME": str(home)}
    assert interpreter(project, environ, managed("nvm")) == paths["18.20.4"]
    assert interpreter(project, environ, managed("nvm", "lts/*")) == paths["20.9.0"]
    assert interpreter(project, environ, managed("nvm", "node")) == paths["22.1.0"]
    assert interpreter(project, environ, managed("nvm", "loop")) is None
    (nvm / "outside").write_text("v20.9.0\n")
    (project / ".nvmrc").write_text("../outside\n")
    assert interpreter(project, environ, managed("nvm")) is None
    (project / ".nvmrc").write_text("lts/iron\n")
    assert interpreter(project, environ, managed("nvm")) == paths["20.9.0"]


def test_rbenv_reads_the_project_file_with_its_prefix(project: Path, home: Path) -> None:
    ruby = program(home / ".rbenv/versions/3.2.1/bin/ruby")
    environ = {"HOME": str(home)}
    (project / ".ruby-version").write_text("ruby-3.2.1\n")
    assert interpreter(project, environ, managed("rbenv")) == ruby
    other = program(home / ".rbenv/versions/3.3.0/bin/ruby")
    rule = managed("rbenv")
    assert interpreter(project, {**environ, "RBENV_VERSION": "3.3.0"}, rule) == other


def test_asdf_reads_tool_versions(project: Path, home: Path) -> None:
    installs = home / ".asdf/installs"
    paths = {v: program(installs / f"python/{v}/bin/python") for v in ("3.8.1", "3.9.1", "3.10.1")}
    environ, rule = {"HOME": str(home)}, managed("asdf", tool="python")
    (home / ".tool-versions").write_text("nodejs 20.0.0\npython 3.8.1\n")
    assert interpreter(project, environ, rule) == paths["3.8.1"]
    (project / ".python-version").write_text("3.9\n")
    assert interpreter(project, environ, rule) == paths["3.9.1"]
    (project / ".tool-versions").write_text("python 9.9 latest:3.10 # remark\n")
    assert interpreter(project, environ, rule) == paths["3.10.1"]
    environ["ASDF_PYTHON_VERSION"] = "3.8.1"
    assert interpreter(project, environ, rule) == paths["3.8.1"]


@pytest.mark.parametrize(
    "text",
    [
        '[tools]\nnode = "22"\n',
        '[tools]\nnode = ["9", "22"]\n',
        '[tools]\nnode = { version = "22", postinstall = "x" }\n',
        '[tools]\nnode = "latest"\n',
    ],
)
def test_mise_reads_its_files(text: str, project: Path, home: Path) -> None:
    data = home / "data/mise"
    node = program(data / "installs/node/22.3.0/bin/node")
    program(data / "installs/node/20.1.0/bin/node")
    environ = {"HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    rule = managed("mise", tool="node")
    assert interpreter(project, environ, rule) is None
    (home / ".config/mise").mkdir(parents=True)
    (home / ".config/mise/config.toml").write_text(text)
    assert interpreter(project, environ, rule) == node
    (home / ".config/mise/config.toml").write_text("not toml [")
    assert interpreter(project, environ, rule) is None
    (project / "mise.toml").write_text(text)
    assert interpreter(project, environ, rule) == node


def test_the_fallback_can_name_the_tool_of_a_general_manager(home: Path) -> None:
    python = program(home / ".asdf/installs/python/3.11.4/bin/python3")
    rule = managed("asdf", "3.11.4", fallback="python3")
    assert interpreter(None, {"HOME": str(home)}, rule) == python
    go = program(home / ".asdf/installs/go/1.22.0/bin/go")
    assert interpreter(None, {"HOME": str(home)}, managed("asdf", "1.22", tool="go")) == go


def test_a_version_file_cannot_leave_the_managers_folder(project: Path, home: Path) -> None:
    program(project / "evil/bin/python")
    program(home / ".pyenv/versions/3.9.1/bin/python")
    for text in ("../../../project/evil", str(project / "evil"), "..", "3.9.1/../../x"):
        (project / ".python-version").write_text(text)
        assert interpreter(project, {"HOME": str(home)}, managed("pyenv")) is None


@pytest.mark.parametrize("manager", ["nvm", "mise"])
def test_an_inaccessible_configuration_folder_is_ignored(manager: str, home: Path) -> None:
    layout = {"nvm": ".nvm/versions/node/v20.1.0", "mise": ".local/share/mise/installs/node/20.1.0"}
    node = program(home / layout[manager] / "bin/node")
    too_long = "/" + "x" * 300
    environ = {"HOME": str(home), "XDG_CONFIG_HOME": too_long, "XDG_DATA_HOME": too_long}
    more = {"tool": "node"} if manager == "mise" else {}
    assert interpreter(None, environ, managed(manager, "20", **more)) == node


@pytest.mark.parametrize(
    "text",
    [
        "tools.node = " + "[" * 20_000,
        "tools.node" + ".version" * 5_000 + ' = "20"',
        "tools.node = " + "9" * 5_000,
    ],
    ids=["nested lists", "nested keys", "a number without end"],
)
def test_a_mise_file_that_exceeds_the_parser_is_skipped(
    text: str, project: Path, home: Path
) -> None:
    node = program(home / ".local/share/mise/installs/node/20.1.0/bin/node")
    (project / "mise.toml").write_text(text)
    (project / ".mise.toml").write_text('tools.node = "20"')
    assert interpreter(project, {"HOME": str(home)}, managed("mise", tool="node")) == node
