"""Bundles: `.ai` folders of other installed packages, found by entry points and never imported."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rye.errors import AmbiguousIdError, ItemNotFoundError
from rye.spaces.bundles import bundle_faults, system_spaces
from rye.spaces.entry_points import entry_points
from rye.spaces.resolver import Resolver
from rye_spaces import PYTHON_ITEM, TemporarySpaces, has_same_answer

Install = Callable[..., Path]


@pytest.fixture(autouse=True)
def no_other_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test of this process may have worked in the folder that contains Rye itself."""
    monkeypatch.setattr("rye.spaces.entry_points._projects", set())


@pytest.fixture
def spaces(tmp_path: Path) -> TemporarySpaces:
    return TemporarySpaces(tmp_path)


@pytest.fixture
def install(spaces: TemporarySpaces, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that installs a distribution into a folder on ``sys.path``."""
    site = spaces.folder / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def distribution(
        name: str, package: str, *items: str, group: str = "rye.bundles", point: str = "tools"
    ) -> Path:
        home = site.joinpath(*package.split("."))
        home.mkdir(parents=True, exist_ok=True)
        (home / "__init__.py").write_text("raise SystemExit('a bundle was imported')\n")
        for item in items:
            path = home / ".ai" / "tools" / item
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PYTHON_ITEM, encoding="utf-8")
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{point} = {package}\n")
        return home / ".ai"

    return distribution


def test_ryes_own_space_is_first_and_bundles_follow_by_name(
    spaces: TemporarySpaces, install: Install
) -> None:
    zebra = install("a-dist", "zebra", "z/tool.py")
    acme = install("z-dist", "acme", "acme/tool.py")
    assert [(each.name, each.bundle, each.root) for each in system_spaces(spaces.context)] == [
        ("system", "rye", spaces.folder / "system" / ".ai"),
        ("system", "acme", acme),
        ("system", "zebra", zebra),
    ]


def test_an_item_of_a_bundle_is_found_in_the_system_space(
    spaces: TemporarySpaces, install: Install
) -> None:
    root = install("acme", "acme", "acme/tool.py")
    for asked in ("acme/tool", "tool"):
        found = spaces.resolver().resolve(asked)
        assert found.item_id == "acme/tool"
        assert found.path == root / "tools/acme/tool.py"
        assert (found.space.name, found.space.bundle) == ("system", "acme")


def test_a_bundle_below_another_package_is_located_without_importing_it(
    spaces: TemporarySpaces, install: Install
) -> None:
    root = install("acme", "acme.rye_tools", "acme/tool.py")
    (root.parent.parent / "__init__.py").write_text("raise SystemExit('imported')\n")
    assert system_spaces(spaces.context)[1].root == root


def test_a_bundle_cannot_claim_an_id_of_rye(spaces: TemporarySpaces, install: Install) -> None:
    ours = spaces.write("system", "rye/bash/bash.py")
    theirs = install("evil", "evil", "rye/bash/bash.py") / "tools/rye/bash/bash.py"
    with pytest.raises(AmbiguousIdError) as caught:
        spaces.resolver().resolve("rye/bash/bash")
    assert str(caught.value) == (
        f"'rye/bash/bash' is in several bundles: 'rye' ({ours}) and 'evil' ({theirs}); "
        "uninstall one of them"
    )
    assert [str(error) for error in spaces.resolver().conflicts()] == [str(caught.value)]


def test_a_bundle_that_claims_an_id_later_is_noticed(
    spaces: TemporarySpaces, install: Install
) -> None:
    spaces.write("system", "rye/bash/bash.py")
    root = install("evil", "evil", "evil/tool.py")
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("rye/bash/bash")
    (root / "tools/rye/bash").mkdir(parents=True)
    (root / "tools/rye/bash/bash.py").write_text(PYTHON_ITEM, encoding="utf-8")
    assert not has_same_answer(resolver, found)


def test_a_bundle_cannot_change_what_a_short_id_of_rye_means(
    spaces: TemporarySpaces, install: Install
) -> None:
    ours = spaces.write("system", "rye/core/runtimes/python_runtime.py")
    install("evil", "evil", "evil/python_runtime.py")
    assert spaces.resolver().resolve("python_runtime").path == ours


def test_a_short_id_in_two_bundles_is_ambiguous(spaces: TemporarySpaces, install: Install) -> None:
    first = install("one", "one", "one/lint.py")
    second = install("two", "two", "two/lint.py")
    with pytest.raises(AmbiguousIdError) as caught:
        spaces.resolver().resolve("lint")
    assert str(caught.value) == (
        f"short id 'lint' is ambiguous: 'one/lint' ({first}) and 'two/lint' ({second}); "
        "use the full id"
    )


@pytest.mark.parametrize(
    ("package", "reason"),
    [
        ("no_such_package_here", "the package was not found"),
        ("json", "the package has no folder .ai"),
        ("../../etc", "the value is not the name of a package"),
        ("pkg:function", "the value is not the name of a package"),
        ("rye", "the name is already taken"),
    ],
)
def test_an_unusable_bundle_is_reported_and_does_not_affect_others(
    spaces: TemporarySpaces, install: Install, package: str, reason: str
) -> None:
    root = install("good", "good", "good/tool.py")
    info = root.parent.parent / "bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rye.bundles]\nx = {package}\n")
    assert [each.bundle for each in system_spaces(spaces.context)] == ["rye", "good"]
    message = f"bundle '{package}' of bad: {reason}"
    assert [str(fault) for fault in bundle_faults(spaces.context)] == [message]
    with pytest.raises(ItemNotFoundError) as caught:
        spaces.resolver().resolve("nowhere/at/all")
    assert str(caught.value) == (
        f"there is no item 'nowhere/at/all' ({message}); list the available items with: rye list"
    )


def test_a_package_that_registers_a_primitive_reserves_its_id(
    spaces: TemporarySpaces, install: Install
) -> None:
    install("acme", "acme", group="rye.primitives", point="acme/queue")
    spaces.write("project", "acme/queue.py")
    assert spaces.resolver().resolve("acme/queue").path is None


def test_a_package_installed_while_the_process_runs_is_found(install: Install) -> None:
    assert entry_points("rye.bundles") == ()
    install("acme", "acme", "acme/tool.py")
    assert [each.value for each in entry_points("rye.bundles")] == ["acme"]


class TestProjectsAreNotInstalledPackages:
    def test_the_working_directory_cannot_register_a_bundle(
        self, spaces: TemporarySpaces, install: Install, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site = install("evil", "evil", "evil/tool.py").parent.parent
        monkeypatch.chdir(site)
        for entry in (str(site), "", ".", f"{site}/../site", "../site", "below"):
            if entry == "below":
                site.rename(site.with_name("below"))
                monkeypatch.chdir(site.parent)
            monkeypatch.setattr(sys, "path", [entry, *sys.path[1:]])
            assert [each.bundle for each in system_spaces(spaces.context)] == ["rye"]
            assert entry_points("rye.bundles") == ()

    @pytest.mark.parametrize("group", ["rye.bundles", "rye.primitives"])
    def test_a_project_on_the_path_cannot_register_anything(
        self, spaces: TemporarySpaces, install: Install, group: str
    ) -> None:
        site = install("evil", "evil", "evil/tool.py", group=group).parent.parent
        assert [each.value for each in entry_points(group)] == ["evil"]
        for project in (site, site.parent):
            resolver = Resolver(replace(spaces.context, project_path=project))
            assert [each.bundle for each in resolver.spaces if each.bundle] == ["rye"]
            assert entry_points(group) == ()

    def test_a_link_in_a_project_does_not_make_it_installed(
        self, spaces: TemporarySpaces, install: Install, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site = install("evil", "evil", "evil/tool.py").parent.parent
        project = spaces.context.project_path
        project.mkdir()
        (project / "link").symlink_to(site)
        monkeypatch.setattr(sys, "path", [str(project / "link"), *sys.path[1:]])
        assert [each.bundle for each in system_spaces(spaces.context)] == ["rye"]

    def test_a_project_folder_of_the_same_name_does_not_replace_a_bundle(
        self, spaces: TemporarySpaces, install: Install, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = install("acme", "acme", "acme/tool.py")
        project = spaces.context.project_path
        (project / "acme" / ".ai").mkdir(parents=True)
        (project / "acme" / "__init__.py").touch()
        monkeypatch.syspath_prepend(str(project))
        assert system_spaces(spaces.context)[1].root == root

    def test_an_installed_entry_point_cannot_point_into_the_project(
        self, spaces: TemporarySpaces, install: Install, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        package = install("acme", "acme", "acme/tool.py").parent
        project = spaces.context.project_path
        project.mkdir()
        package.rename(project / "acme")
        monkeypatch.syspath_prepend(str(project))
        assert [str(fault) for fault in bundle_faults(spaces.context)] == [
            "bundle 'acme' of acme: the package is in the project or the working directory"
        ]

    def test_the_environment_that_rye_runs_in_may_be_in_the_project(
        self, spaces: TemporarySpaces, install: Install, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        site = install("acme", "acme", "acme/tool.py").parent.parent
        env = spaces.folder / "project" / ".venv"
        env.mkdir(parents=True)
        site.rename(env / "lib")
        monkeypatch.setattr(sys, "path", [str(env / "lib"), *sys.path[1:]])
        assert [each.bundle for each in system_spaces(spaces.context)] == ["rye"]
        monkeypatch.setattr(sys, "prefix", str(env))
        assert [each.bundle for each in system_spaces(spaces.context)] == ["rye", "acme"]


def test_without_entry_points_importlib_metadata_is_not_imported() -> None:
    code = (
        "import sys\n"
        "from rye.context import Context\n"
        "from rye.spaces.resolver import Resolver\n"
        "Resolver(Context.from_machine()).resolve('subprocess')\n"
        "print(sorted({'importlib.metadata', 'yaml', 'asyncio', 'difflib'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
