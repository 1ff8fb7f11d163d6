"""What a fetched source contains: its tools, who signed them, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rye.context import Context
from rye.errors import NoMetadataError, RyeError
from rye.formats import format_of
from rye.items.element import ItemFile
from rye.items.metadata import parse_metadata
from rye.permissions.words import in_short
from rye.trust.store import TrustStore
from rye.trust.verify import Standing, judge


class SurveyedTool(NamedTuple):
    """One file of a source that is a tool, or would be one."""

    item_id: str
    description: str
    signer: str
    """The fingerprint in the signature line; empty if there is none."""
    owner: str
    """The owner of a key that the user trusts; empty for any other key."""
    standing: str
    may: str
    """What it may do, in a few words."""
    problem: str = ""

    @property
    def trusted(self) -> bool:
        """True if it may run as it is."""
        return self.standing == Standing.TRUSTED.value


def survey(files: Mapping[str, bytes], name: str, context: Context) -> list[SurveyedTool]:
    """Look at the files that become tools, without writing or running them."""
    store = TrustStore(context)
    store.stamp()
    folder = context.user_space / ".ai" / "tools" / name
    found = [_surveyed(folder / one, f"{name}/{one}", files[one], store) for one in sorted(files)]
    return [one for one in found if one is not None]


def _surveyed(path: Path, name: str, content: bytes, store: TrustStore) -> SurveyedTool | None:
    file = ItemFile(path=path, content=content)
    item_id = name.removesuffix(path.suffix)
    verdict = judge(file, format_of(path).comment, store)
    entry = store.find(verdict.fingerprint) if verdict.fingerprint else None
    owner = entry.owner if entry is not None and verdict.trusted else ""
    facts = (verdict.fingerprint, owner, verdict.standing.value)
    try:
        metadata = parse_metadata(file)
    except NoMetadataError:
        return None
    except RyeError as error:
        return SurveyedTool(item_id, "", *facts, "", str(error))
    return SurveyedTool(item_id, metadata.description, *facts, in_short(metadata.permissions))
