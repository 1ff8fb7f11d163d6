"""The system space: Rye's own ``.ai``, and those that other installed packages bring.

A package announces its bundle by an entry point of the group ``rye.bundles`` whose value is the
package that contains the folder ``.ai``. The package is located, never imported.
"""

from __future__ import annotations

from pathlib import Path

from lilux.record import Record

from rye.context import Context
from rye.spaces.entry_points import BUNDLES, announcements, installed_path, is_installed, leave_out
from rye.spaces.model import Space

OWN = "rye"


class BundleFault(Record, frozen=True, kw_only=True):
    """An announcement that cannot be used, and why: other items must not suffer from it."""

    distribution: str
    package: str
    reason: str

    def __str__(self) -> str:
        return f"bundle '{self.package}' of {self.distribution or 'no distribution'}: {self.reason}"


def system_spaces(context: Context) -> tuple[Space, ...]:
    """Rye's own first, then the bundles in the order of their packages' names."""
    return discover(context)[0]


def bundle_faults(context: Context) -> tuple[BundleFault, ...]:
    """The announcements that :func:`system_spaces` left out."""
    return discover(context)[1]


def discover(context: Context) -> tuple[tuple[Space, ...], tuple[BundleFault, ...]]:
    """Both of the above at once."""
    leave_out(context.project_path)
    spaces = {OWN: Space(name="system", root=context.system_space / ".ai", bundle=OWN)}
    faults = []
    for announced in sorted(announcements(BUNDLES), key=lambda each: (each.value, each.name)):
        root, reason = _locate(announced.value)
        if not reason and announced.value in spaces:
            reason = "" if spaces[announced.value].root == root else "its name is taken"
        elif not reason:
            spaces[announced.value] = Space(name="system", root=root, bundle=announced.value)
        if reason:
            faults.append(
                BundleFault(
                    distribution=announced.distribution, package=announced.value, reason=reason
                )
            )
    return tuple(spaces.values()), tuple(faults)


def _locate(package: str) -> tuple[Path, str]:
    """The ``.ai`` of the package. Only the first part is looked up: more would import parents."""
    import importlib.util
    from importlib.machinery import PathFinder

    top, *rest = package.split(".")
    nowhere = Path()
    if not all(part.isidentifier() for part in (top, *rest)):
        return nowhere, "the value is not the name of a package"
    try:
        # The second knows what is installed for editing; the first is not led astray by a folder of
        # the same name where one works.
        spec = PathFinder.find_spec(top, installed_path()) or importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return nowhere, "there is no such package"
    places = [
        each for each in spec.submodule_search_locations if is_installed(str(Path(each).parent))
    ]
    if not places:
        return nowhere, "the package lies in the project or the working directory"
    for location in places:
        root = Path(location, *rest, ".ai")
        if root.is_dir():
            return root.resolve(), ""
    return nowhere, "the package has no folder .ai"
