"""Turns an item id into a path: the project is searched first, then the user, then the system."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rye.context import Context
from rye.errors import AmbiguousIdError, ItemNotFoundError, RyeError
from rye.spaces.bundles import BundleFault, discover
from rye.spaces.folders import Stamp, checked_file, files_with_stem, stamp_of
from rye.spaces.ids import check_item_id, primitive_ids
from rye.spaces.index import SpaceIndex, SpaceTree
from rye.spaces.model import Resolution, Space
from rye.spaces.watch import Watch, watch_all

_MAX_ANSWERS = 4096

_Tree = tuple[Space, dict[str, list[str]]]
"""A space and its item ids, each with the names of its files."""


class Resolver:
    """Finds items in the three spaces.

    A full id is looked up by name, which costs the same however many items there are. A short id
    needs an index of each space that is searched, since the file may be in any folder: the first
    search reads every folder, later ones need a ``stat`` for each. An answer is cached with the
    folders that it depends on, and used again while they are unchanged.

    Threads may share a resolver: what it remembers is replaced, never changed.
    """

    def __init__(
        self,
        context: Context,
        *,
        primitives: Iterable[str] | None = None,
        own: tuple[Space, ...] | None = None,
    ) -> None:
        """``primitives`` are the reserved ids; by default those of :func:`primitive_ids`.

        ``own`` replaces the spaces of the project and of the user.
        """
        system, self.bundle_faults = discover(context)
        project = Space(name="project", root=context.project_path / ".ai")
        user = Space(name="user", root=context.user_space / ".ai")
        # In the home folder, the project's space is the user's space, and is treated as that.
        if own is None:
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
        """Return where ``item_id`` is found, for an item of ``from_space``.

        Only spaces of the same or lower precedence than ``from_space`` are searched. Raises
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
        """Return what these answers depend on: while that is unchanged, they stay the same.

        ``None`` if an answer is not cached, or if folders were changing between the answers.
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
        """Return up to three ids similar to ``item_id``, the most similar first."""
        from rye.suggestions import closest_ids

        known: set[str] = set(self._reserved)
        for space in self.spaces:
            known.update(self._tree(space).items)
        return closest_ids(item_id, known)

    def iter_items(self, space: Space | None = None) -> Iterator[Resolution]:
        """Yield every item of one space, or every item that an id resolves to, sorted by id.

        Ids that cannot be resolved (two files, a link to the outside) are left out; see
        :meth:`conflicts`. Files are not read, so helper files without metadata are included.
        """
        for entry in self.walk(space):
            if isinstance(entry, Resolution):
                yield entry

    def conflicts(self, space: Space | None = None) -> Iterator[RyeError]:
        """Yield the errors of the ids that :meth:`iter_items` leaves out."""
        for entry in self.walk(space):
            if isinstance(entry, RyeError):
                yield entry

    def walk(self, space: Space | None = None) -> Iterator[Resolution | RyeError]:
        """Yield what :meth:`iter_items` and :meth:`conflicts` yield, in one pass."""
        spaces = self.spaces if space is None else (space,)
        trees = [(each, self._tree(each).items) for each in spaces]
        ids: set[str] = set()
        for each, items in trees:
            ids.update(items if each.name == "system" else set(items) - self._reserved)
        plain = self._ids_without_short_meaning(trees)
        for item_id in sorted(ids):
            try:
                if space is None and "/" not in item_id and item_id not in plain:
                    found = self._resolve_listed(item_id)
                else:
                    found = self._find_in_trees(item_id, trees)
            except RyeError as error:
                yield error
            else:
                yield found

    def _ids_without_short_meaning(self, trees: Iterable[_Tree]) -> set[str]:
        """Return the ids without a slash that name a file of the project or the user, and no other.

        The trees are enough to find them; resolving each one would take a millisecond.
        """
        plain: set[str] = set()
        nested = set(self._reserved_stems)
        for space, items in trees:
            if space.name == "system":
                break
            plain.update(each for each in items if "/" not in each and each not in nested)
            nested.update(each.rpartition("/")[2] for each in items if "/" in each)
        return plain

    def _resolve_listed(self, stem: str) -> Resolution:
        """Resolve an id without a slash; raise an error if it is the short id of another file."""
        found = self.resolve(stem)
        if found.item_id != stem:
            raise AmbiguousIdError(
                f"'{stem}' is the short id of {found.path}, which takes precedence",
                hint="rename one",
            )
        return found

    def _find_in_trees(self, item_id: str, trees: Iterable[_Tree]) -> Resolution:
        search = _Search(item_id, None)
        matches: list[tuple[Space, Path]] = []
        for space, items in trees:
            if matches and space.precedence < matches[0][0].precedence:
                break
            names = items.get(item_id, [])
            if item_id in self._reserved and space.name != "system":
                names = []
            folder = os.path.dirname(f"{space.tools}/{item_id}")  # noqa: PTH120 - for every item
            search.match(space, item_id, folder, names, matches)
            if not names and "/" not in item_id:
                search.absent.append(space.tools / "**" / item_id)
        return search.only_match(item_id, matches)

    def _tree(self, space: Space) -> SpaceTree:
        return self._indexes[space.root].refresh()

    def _resolve_primitive(self, item_id: str, search: _Search) -> Resolution:
        """Find the file that describes a primitive, which may also have none."""
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
                tree = index.refresh()
                search.spaces.append((index, tree.generation))
                ids += [(each, space) for each in tree.ids_with_stem(stem)]
            if len(ids) > 1:
                listed = " and ".join(f"'{each}' ({space.root})" for each, space in ids)
                raise AmbiguousIdError(
                    f"short id '{stem}' is ambiguous: {listed}", hint="use the full id"
                )
            found = search.look(tier, ids[0][0]) if ids else None
            if found is not None:  # otherwise it was removed a moment ago
                return found
            search.absent += [space.tools / "**" / stem for space in tier]
        return None

    def _tiers(self, limit: int, *, bundles_apart: bool) -> Iterator[tuple[Space, ...]]:
        """Yield groups of spaces that are searched together.

        For a short id, Rye's own files take precedence over those of bundles: installing a package
        must not change what ``python_runtime`` means.
        """
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
        watch = watch_all([Watch(tuple(search.folders), tuple(search.spaces))])
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
        if nearest:
            hint = f"did you mean {', '.join(nearest)}?"
            return ItemNotFoundError(message, hint=hint, nearest=nearest)
        return ItemNotFoundError(
            message,
            hint="list the available items with: rye list",
            agent_hint="find available items with `search`",
        )


class _Search:
    """One search for an id: what it looked at, and which paths were missing."""

    def __init__(self, asked: str, from_space: Space | None) -> None:
        self._asked = asked
        self._from_space = from_space
        self.folders: list[tuple[str, Stamp]] = []
        self.spaces: list[tuple[SpaceIndex, int]] = []
        self.absent: list[Path] = []

    def look(self, tier: tuple[Space, ...], item_id: str) -> Resolution | None:
        """Return the only file in these spaces with exactly this id; ``None`` if there is none."""
        parent, _, stem = item_id.rpartition("/")
        matches: list[tuple[Space, Path]] = []
        for space in tier:
            folder = f"{space.tools}/{parent}" if parent else str(space.tools)
            stamp = stamp_of(folder)
            self.folders.append((folder, stamp))
            names = files_with_stem(folder, stem) if stamp is not None else []
            self.match(space, item_id, folder, names, matches)
        return self.only_match(item_id, matches) if matches else None

    def match(
        self,
        space: Space,
        item_id: str,
        folder: str,
        names: list[str],
        matches: list[tuple[Space, Path]],
    ) -> None:
        if len(names) > 1:
            listed = " and ".join(f"{folder}/{name}" for name in names)
            raise AmbiguousIdError(f"'{item_id}' is both {listed}", hint="remove or rename one")
        if names:
            matches.append((space, checked_file(folder, names[0], space.root)))
        else:
            self.absent.append(space.tools / item_id)

    def only_match(self, item_id: str, matches: list[tuple[Space, Path]]) -> Resolution:
        if len(matches) > 1:
            listed = " and ".join(f"'{space.bundle}' ({path})" for space, path in matches)
            raise AmbiguousIdError(
                f"'{item_id}' is in several bundles: {listed}", hint="uninstall one of them"
            )
        space, path = matches[0]
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
    """Map stems to ids; of two ids with one stem, the first wins, which is Rye's own."""
    stems: dict[str, str] = {}
    for item_id in ids:
        stems.setdefault(item_id.rpartition("/")[2], item_id)
    return stems
