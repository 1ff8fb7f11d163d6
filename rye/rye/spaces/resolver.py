"""An id becomes a path: project before user before system, and always the same answer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rye.context import Context
from rye.errors import AmbiguousIdError, ItemNotFoundError, RyeError
from rye.spaces.bundles import BundleFault, discover
from rye.spaces.folders import Stamp, checked_file, files_bearing, stamp_of
from rye.spaces.ids import check_item_id
from rye.spaces.index import SpaceIndex
from rye.spaces.model import Resolution, Space
from rye.spaces.reserved import primitive_ids
from rye.spaces.watch import Watch, watch_all

_MAX_ANSWERS = 4096


class Resolver:
    """Finds items in the three spaces.

    A full id is looked up by name and costs the same however many items there are. A short id
    needs an index of each space that is searched, built once and kept up to date: a file of that
    stem may appear in any folder, see :mod:`rye.spaces.tree_watch`. An answer is remembered
    together with the folders that it depends on, and given again while they stay as they were.
    """

    def __init__(self, context: Context, *, primitives: Iterable[str] | None = None) -> None:
        """``primitives`` are the reserved ids; by default Rye's and those of installed packages."""
        system, self.bundle_faults = discover(context)
        project = Space(name="project", root=context.project_path / ".ai")
        user = Space(name="user", root=context.user_space / ".ai")
        # Called from the home folder itself, what lies there is the user's, as it is elsewhere.
        own = (user,) if project.root == user.root else (project, user)
        self.spaces: tuple[Space, ...] = (*own, *system)
        self._system = system
        reserved = tuple(primitive_ids() if primitives is None else primitives)
        self._reserved = frozenset(reserved)
        self._reserved_stems = _by_stem(reserved)
        self._indexes = {space.root: SpaceIndex(space) for space in self.spaces}
        self._answers: dict[tuple[str, int], tuple[Resolution, Watch]] = {}

    bundle_faults: tuple[BundleFault, ...]

    def resolve(self, item_id: str, *, from_space: Space | None = None) -> Resolution:
        """Where the item is that ``item_id`` names for an item of ``from_space``.

        Only spaces of equal or lower precedence than ``from_space`` are searched. Raises
        :class:`ItemIdError`, :class:`ItemNotFoundError`, :class:`AmbiguousIdError` or
        :class:`UnsafePathError`.
        """
        limit = from_space.precedence if from_space is not None else 3
        answer = self._answers.get((item_id, limit)) if isinstance(item_id, str) else None
        if answer is not None and answer[1].is_unchanged():
            return answer[0]
        check_item_id(item_id)
        search = _Search(item_id, from_space)
        full_id = self._reserved_stems.get(item_id, item_id)
        found: Resolution | None
        if full_id in self._reserved:
            found = self._resolve_primitive(full_id, search)
        elif "/" in item_id:
            found = self._resolve_full(item_id, search, limit)
        else:
            found = self._resolve_short(item_id, search, limit)
        if found is None:
            raise self._not_found(item_id, from_space)
        self._remember((item_id, limit), found, search)
        return found

    def watch(self, resolutions: Iterable[Resolution]) -> Watch | None:
        """What these answers depend on, all together: while it is unchanged, they are the same.

        ``None`` if one of them is not remembered, or not to be had together with the others, since
        what they depend on was just changing.
        """
        watches = []
        for one in resolutions:
            limit = one.from_space.precedence if one.from_space is not None else 3
            answer = self._answers.get((one.asked or one.item_id, limit))
            if answer is None or answer[0] != one:
                return None
            watches.append(answer[1])
        return watch_all(watches)

    def nearest(self, item_id: str) -> list[str]:
        """At most three ids that may have been meant, the likeliest first."""
        from rye.suggestions import closest_ids

        known: set[str] = set(self._reserved)
        for space in self.spaces:
            known.update(self._index(space).items)
        return closest_ids(item_id, known)

    def iter_items(self, space: Space | None = None) -> Iterator[Resolution]:
        """Every item in the order of the ids: those of one space, or those that ids lead to.

        What an id cannot lead to (two files, a link that leads out) is left out; see
        :meth:`conflicts`. Files are not read, so helper files without metadata are among them.
        """
        for entry in self._walk(space):
            if isinstance(entry, Resolution):
                yield entry

    def conflicts(self, space: Space | None = None) -> Iterator[RyeError]:
        """The errors that :meth:`iter_items` passed over."""
        for entry in self._walk(space):
            if isinstance(entry, RyeError):
                yield entry

    def _walk(self, space: Space | None) -> Iterator[Resolution | RyeError]:
        spaces = self.spaces if space is None else (space,)
        ids: set[str] = set()
        for each in spaces:
            items = self._index(each).items
            ids.update(items if each.name == "system" else set(items) - self._reserved)
        for item_id in sorted(ids):
            try:
                found = self._in_indexes(item_id, spaces)
            except RyeError as error:
                yield error
            else:
                yield found

    def _in_indexes(self, item_id: str, spaces: tuple[Space, ...]) -> Resolution:
        if "/" not in item_id and spaces is self.spaces:
            found = self.resolve(item_id)
            if found.item_id != item_id:
                raise AmbiguousIdError(
                    f"'{item_id}' leads to {found.path} by its short id", hint="rename one"
                )
            return found
        search = _Search(item_id, None)
        claims: list[tuple[Space, Path]] = []
        for space in spaces:
            if claims and space.precedence < claims[0][0].precedence:
                break
            names = self._indexes[space.root].items.get(item_id, [])
            if item_id in self._reserved and space.name != "system":
                names = []
            folder = os.path.dirname(f"{space.tools}/{item_id}")  # noqa: PTH120 - for every item
            search.claim(space, item_id, folder, names, claims)
        return search.decided(item_id, claims)

    def _index(self, space: Space) -> SpaceIndex:
        index = self._indexes[space.root]
        index.refresh()
        return index

    def _resolve_primitive(self, item_id: str, search: _Search) -> Resolution:
        """The file that describes a primitive, or none: it runs without one."""
        found = search.look(self._system, item_id)
        return found or search.resolution(item_id, None, self._system[0], ())

    def _resolve_full(self, item_id: str, search: _Search, limit: int) -> Resolution | None:
        for tier in self._tiers(limit, bundles_apart=False):
            found = search.look(tier, item_id)
            if found is not None:
                return found
        return None

    def _resolve_short(self, stem: str, search: _Search, limit: int) -> Resolution | None:
        for tier in self._tiers(limit, bundles_apart=True):
            found = search.look(tier, stem)
            if found is not None:
                return found
            ids = []
            for space in tier:
                index = self._indexes[space.root]
                search.trees.append((index, index.refresh()))
                ids += [(each, space) for each in index.ids_bearing(stem)]
            if len(ids) > 1:
                listed = " and ".join(f"'{each}' ({space.root})" for each, space in ids)
                raise AmbiguousIdError(
                    f"short id '{stem}' is borne by {listed}", hint="use the full id"
                )
            if ids:
                return search.look(tier, ids[0][0])
            search.absent += [space.tools / "**" / stem for space in tier]
        return None

    def _tiers(self, limit: int, *, bundles_apart: bool) -> Iterator[tuple[Space, ...]]:
        """Spaces that are searched together. For a short id Rye's own files come before those of
        bundles: installing a package must not change what `python_runtime` means."""
        for space in self.spaces:
            if space.name != "system" and space.precedence <= limit:
                yield (space,)
        if bundles_apart:
            yield self._system[:1]
            if self._system[1:]:
                yield self._system[1:]
        else:
            yield self._system

    def _remember(self, key: tuple[str, int], found: Resolution, search: _Search) -> None:
        watch = watch_all([Watch(tuple(search.watched), tuple(search.trees))])
        if watch is not None and watch.is_settled():
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers.clear()
            self._answers[key] = (found, watch)

    def _not_found(self, item_id: str, from_space: Space | None) -> ItemNotFoundError:
        message = f"there is no item '{item_id}'"
        if from_space is not None and from_space.name != "project":
            message = f"{message} that an item of the {from_space.name} space may use"
            try:
                higher = self.resolve(item_id)
            except RyeError:
                pass
            else:
                message = f"{message} ({higher.path} is in the {higher.space.name} space)"
        if self.bundle_faults:
            message = f"{message} ({'; '.join(str(fault) for fault in self.bundle_faults)})"
        nearest = self.nearest(item_id)
        names = ", ".join(nearest)
        hint = f"did you mean {names}?" if nearest else "see `rye list` for those that there are"
        return ItemNotFoundError(message, hint=hint, nearest=nearest)


class _Search:
    """One question: where it was looked, and what was not there."""

    def __init__(self, asked: str, from_space: Space | None) -> None:
        self._asked = asked
        self._from_space = from_space
        self.watched: list[tuple[str, Stamp]] = []
        self.trees: list[tuple[SpaceIndex, int]] = []
        self.absent: list[Path] = []

    def look(self, tier: tuple[Space, ...], item_id: str) -> Resolution | None:
        """The one file of the tier that has exactly this id."""
        parent, _, stem = item_id.rpartition("/")
        claims: list[tuple[Space, Path]] = []
        for space in tier:
            folder = f"{space.tools}/{parent}" if parent else str(space.tools)
            stamp = stamp_of(folder)
            self.watched.append((folder, stamp))
            names = files_bearing(folder, stem) if stamp is not None else []
            self.claim(space, item_id, folder, names, claims)
        return self.decided(item_id, claims) if claims else None

    def claim(
        self,
        space: Space,
        item_id: str,
        folder: str,
        names: list[str],
        claims: list[tuple[Space, Path]],
    ) -> None:
        if len(names) > 1:
            listed = " and ".join(f"{folder}/{name}" for name in names)
            raise AmbiguousIdError(f"'{item_id}' is both {listed}", hint="remove or rename one")
        if names:
            claims.append((space, checked_file(folder, names[0], space.root)))
        else:
            self.absent.append(space.tools / item_id)

    def decided(self, item_id: str, claims: list[tuple[Space, Path]]) -> Resolution:
        if len(claims) > 1:
            listed = " and ".join(f"'{space.bundle}' ({path})" for space, path in claims)
            raise AmbiguousIdError(
                f"'{item_id}' is claimed by the bundles {listed}", hint="uninstall one of them"
            )
        space, path = claims[0]
        return self.resolution(item_id, path, space, tuple(self.absent))

    def resolution(
        self, item_id: str, path: Path | None, space: Space, absent: tuple[Path, ...]
    ) -> Resolution:
        return Resolution(
            item_id=item_id,
            path=path,
            space=space,
            absent=absent,
            asked=self._asked,
            from_space=self._from_space,
        )


def _by_stem(ids: Iterable[str]) -> dict[str, str]:
    """Of two primitives of one stem the first counts: Rye's own."""
    stems: dict[str, str] = {}
    for item_id in ids:
        stems.setdefault(item_id.rpartition("/")[2], item_id)
    return stems
