"""The system space: the ``.ai`` that ships with Rye, and those of other installed packages.

A package registers its bundle with an entry point of the group ``rye.bundles``. The value is the
package that contains the folder ``.ai``. The package is located, never imported.
"""

from __future__ import annotations

from pathlib import Path

from lilux.record import Record

from rye.context import Context
from rye.spaces.entry_points import (
    BUNDLES,
    entry_points,
    exclude_project,
    installed_path,
    is_installed,
)
from rye.spaces.model import Space

OWN = "rye"


class BundleFault(Record, frozen=True, kw_only=True):
    """A registered bundle that cannot be used. It is skipped, so that other items still work."""

    distribution: str
    package: str
    reason: str

    def __str__(self) -> str:
        return (
            f"bundle '{self.package}' of {self.distribution or 'an unnamed distribution'}: "
            f"{self.reason}"
        )


def system_spaces(context: Context) -> tuple[Space, ...]:
    """Return Rye's own system space, then the bundles sorted by package name."""
    return discover(context)[0]


def bundle_faults(context: Context) -> tuple[BundleFault, ...]:
    """Return the registered bundles that :func:`system_spaces` skipped."""
    return discover(context)[1]


def discover(context: Context) -> tuple[tuple[Space, ...], tuple[BundleFault, ...]]:
    """Return the system spaces and the bundles that were skipped."""
    exclude_project(context.project_path)
    spaces = {OWN: Space(name="system", root=context.system_space / ".ai", bundle=OWN)}
    faults = []
    for found in sorted(entry_points(BUNDLES), key=lambda each: (each.value, each.name)):
        root, reason = _locate(found.value)
        if not reason and found.value in spaces:
            reason = "" if spaces[found.value].root == root else "the name is already taken"
        elif not reason:
            spaces[found.value] = Space(name="system", root=root, bundle=found.value)
        if reason:
            faults.append(
                BundleFault(distribution=found.distribution, package=found.value, reason=reason)
            )
    return tuple(spaces.values()), tuple(faults)


def _locate(package: str) -> tuple[Path, str]:
    """Return the package's ``.ai`` and an empty reason, or the reason why there is none."""
    import importlib.util
    from importlib.machinery import PathFinder

    # Only the first part is looked up: looking up more would import the parent packages.
    top, *rest = package.split(".")
    nowhere = Path()
    if not all(part.isidentifier() for part in (top, *rest)):
        return nowhere, "the value is not the name of a package"
    try:
        # The first finder ignores a folder of the same name in the working directory. The second
        # also finds editable installations.
        spec = PathFinder.find_spec(top, installed_path()) or importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return nowhere, "the package was not found"
    places = [
        each for each in spec.submodule_search_locations if is_installed(str(Path(each).parent))
    ]
    if not places:
        return nowhere, "the package is in the project or the working directory"
    for location in places:
        root = Path(location, *rest, ".ai")
        if root.is_dir():
            return root.resolve(), ""
    return nowhere, "the package has no folder .ai"
