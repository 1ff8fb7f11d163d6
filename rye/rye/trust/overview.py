"""The trust store for people: the state of each key, what is revoked, which projects are approved.

Nothing here decides what may run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from lilux.sha256 import sha256

from rye.context import Context
from rye.trust.key_folder import KeyFileProblem, KeyFolder
from rye.trust.key_format import EntryFormatError, parse_project_approval
from rye.trust.key_source import OWN_NAME, KeyEntry
from rye.trust.project_approval import APPROVED_PROJECTS
from rye.trust.revocation import Revocation, read_revocation
from rye.trust.store import TrustStore

TRUSTED = "trusted"
TRUSTED_FOR_BUNDLE = "trusted for its bundle"
NOT_APPROVED = "not approved"
REMOVED = "removed by you"
UNUSABLE = "unusable"
REVOKED = "revoked"


class ApprovedProject(NamedTuple):
    """A project whose unsigned parts the user has approved."""

    project: str
    """Its path, for people; empty if the file cannot be used."""
    approved: str
    path: Path
    exists: bool
    """False if there is no such directory any more."""
    problem: str = ""
    """Why the file cannot be used; empty if it can."""


def key_state(entry: KeyEntry, store: TrustStore) -> str:
    """Return one of the words above."""
    if entry.revoked is not None:
        return REVOKED
    if entry.problem:
        return UNUSABLE
    if not entry.trusted and store.removed_on(entry.fingerprint):
        return REMOVED
    if not entry.trusted:
        return NOT_APPROVED
    return TRUSTED if entry.within is None else TRUSTED_FOR_BUNDLE


def owner_words(entry: KeyEntry) -> str:
    """Return whose key it is, and whether it is the user's own."""
    owner = entry.owner or ("" if entry.problem else "(not named)")
    return f"{OWN_NAME} ({owner})" if entry.own and entry.owner != OWN_NAME else owner


def revocations(store: TrustStore) -> list[Revocation]:
    """Return every file that revokes a key, those of the user first."""
    listings = store.revocations.look()[1]
    return [
        read_revocation(listing.path / f"{stem}.toml")
        for listing in listings
        for stem in listing.stems
    ]


def approved_projects(context: Context) -> tuple[list[ApprovedProject], str]:
    """Return the projects that the user has approved, and the problem with their folder."""
    folder = KeyFolder(context.user_space / ".ai" / APPROVED_PROJECTS, guarded=True)
    listing = folder.look()[1]
    found = []
    for stem in () if listing.problem else listing.stems:
        path = listing.path / f"{stem}.toml"
        try:
            approval = parse_project_approval(listing.read(stem))
        except EntryFormatError as error:
            found.append(ApprovedProject("", "", path, exists=False, problem=f"{path}: {error}"))
        except KeyFileProblem as problem:
            found.append(ApprovedProject("", "", path, exists=False, problem=str(problem)))
        else:
            # The name of the file decides; the path in it is for people.
            named = sha256(os.fsencode(approval.project)).hexdigest() == stem
            exists = named and Path(approval.project).is_dir()
            found.append(ApprovedProject(approval.project, approval.approved, path, exists))
    return sorted(found, key=lambda one: (bool(one.problem), one.project)), listing.problem
