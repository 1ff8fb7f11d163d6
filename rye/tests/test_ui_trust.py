"""The pages about trust: keys, signatures, projects, and the difference of a pin."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rye.trust.key_format import render_trusted_key, trusted_key
from rye.trust.operations import trust_add, trust_remove
from rye.trust.rotation import revoke_key
from rye.ui import pin_rows
from rye.ui.site import Site
from rye_project import Project
from trust_world import CREATED, Key
from ui_session import Visitor, served_page

HOSTILE = "<b>eve</b> & co"
BOB, CAROL, EVE, DAVE = Key.new(), Key.new(), Key.new(), Key.new()

SCRIPT = """# /// rye
# executor_id = "rye/core/runtimes/bash_runtime"
# version = "1.0.0"
# description = "Prints."
# ///
echo {}
"""


def words(text: str) -> str:
    """The text of a page, without markup."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def row_of(text: str, name: str) -> str:
    """The words of the row whose heading has this text."""
    rows = [words(one) for one in text.split("<tr>") if f">{name}" in one.partition("</th>")[0]]
    assert len(rows) == 1, rows
    return rows[0]


def listed(project: Project, key: Key, owner: str) -> None:
    """Let the project list a key."""
    folder = project.path / ".ai" / "trusted_keys"
    folder.mkdir(exist_ok=True)
    content = render_trusted_key(trusted_key(key.public, owner, CREATED))
    (folder / f"{key.fingerprint}.toml").write_bytes(content)


def signed_by(project: Project, name: str, key: Key) -> None:
    path = project.path / ".ai" / "tools" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(key.sign(SCRIPT.format("theirs").encode()))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("trust"), shipped_system=True)
    (project.path / ".env").write_text("API_TOKEN=hush-hush\n")
    for key, owner in ((BOB, "bob"), (CAROL, "carol"), (EVE, HOSTILE), (DAVE, "dave")):
        listed(project, key, owner)
    for key in (BOB, EVE, DAVE):
        trust_add(key.fingerprint, project.context)
    trust_remove(DAVE.fingerprint, project.context)
    for name, key in (("bobs", BOB), ("carols", CAROL), ("eves", EVE)):
        signed_by(project, f"team/{name}.sh", key)
    project.tool("notes/fine.sh", SCRIPT.format("fine"))
    project.tool("notes/unsigned.sh", SCRIPT.format("x"), signed=False)
    signed_again = project.tool("notes/again.sh", SCRIPT.format("one"))
    edited = project.tool("notes/edited.sh", SCRIPT.format("one"))
    gone = project.tool("notes/gone.sh", SCRIPT.format("one"))
    for name in ("fine", "again", "edited", "gone"):
        assert project.run(f"notes/{name}").success
    signed_again.write_text(SCRIPT.format("'two <i>'"))
    project.sign(signed_again)
    edited.write_text(edited.read_text().replace("echo one", "echo three"))
    gone.unlink()
    revoke_key(EVE.fingerprint, project.context, reason="<u>stolen")
    _ = project.context
    return project


@pytest.fixture(scope="module")
def visitor(project: Project) -> Iterator[Visitor]:
    with served_page(project) as page:
        yield page.enter()


def test_each_key_has_its_owner_its_state_and_when_it_was_approved(visitor: Visitor) -> None:
    text = visitor.get("/trust").text
    bob = row_of(text, "bob")
    assert bob.startswith(f"bob trusted {BOB.fingerprint} this project approved 20")
    assert row_of(text, "carol").startswith(
        f"carol not approved {CAROL.fingerprint} this project 2026-11-03"
    )
    assert row_of(text, "dave").startswith(f"dave removed by you {DAVE.fingerprint}")
    assert row_of(text, "you").startswith("you trusted ")
    assert row_of(text, "rye release").startswith("rye release trusted for its bundle ")
    assert "rye trust add FINGERPRINT" in text


def test_a_revoked_key_is_listed_with_its_reason_as_text(visitor: Visitor) -> None:
    text = visitor.get("/trust").text
    assert f"{HOSTILE} revoked {EVE.fingerprint}" in words(text)
    assert f"{EVE.fingerprint} {HOSTILE} 20" in words(text)
    assert "&lt;u&gt;stolen" in text
    for page in ("/trust", "/trust/signatures", "/trust/pins"):
        assert not re.search("<[biu]>", visitor.get(page).text), page


def test_the_project_shows_names_of_variables_and_never_their_values(visitor: Visitor) -> None:
    text = visitor.get("/trust").text
    assert "approved Tools may use its unsigned parts. .env API_TOKEN" in words(text)
    assert "hush-hush" not in text


def test_an_unapproved_project_says_how_to_approve_it(tmp_path: Path) -> None:
    project = Project(tmp_path, fresh_clone=True)
    (project.path / ".env").write_text("API_TOKEN=hush-hush\n")
    with served_page(project) as page:
        text = words(page.enter().get("/trust").text)
    assert (
        "not approved You have not approved the unsigned parts of this project; "
        "review and approve them with: rye trust project" in text
    )
    assert "You have not approved any project." in text


def test_what_is_not_trusted_is_first_and_says_what_to_do(visitor: Visitor) -> None:
    text = visitor.get("/trust/signatures").text
    shown = words(text)
    for name, state in (
        ("team/carols", "key not trusted carol"),
        ("team/eves", f"key revoked {HOSTILE}"),
        ("notes/unsigned", "not signed nobody"),
        ("notes/edited", "changed after signing you"),
    ):
        assert state in row_of(text, name), name
        assert text.index(name) < text.index(">notes/fine")
    assert "trusted bob" in row_of(text, "team/bobs")
    assert "notes/unsigned is not signed:" in shown
    assert "4 not trusted" in shown


def test_signatures_are_chosen_by_key_and_by_state(visitor: Visitor) -> None:
    text = visitor.get(f"/trust/signatures?key={BOB.fingerprint}").text
    assert re.findall(r'class="main" href="/tools/([^"]*)"', text) == ["team/bobs"]
    text = visitor.get("/trust/signatures?standing=revoked").text
    assert re.findall(r'class="main" href="/tools/([^"]*)"', text) == ["team/eves"]
    assert "team/bobs" not in visitor.get("/trust/signatures?standing=not-trusted").text
    assert "No item matches." in visitor.get("/trust/signatures?key=%3Cb%3E").text


def test_a_pin_that_does_not_match_is_shown_as_a_difference(visitor: Visitor) -> None:
    text = visitor.get("/trust/pins").text
    assert '<span class="removed">-echo one</span>' in text
    assert '<span class="added">+echo &#39;two &lt;i&gt;&#39;</span>' in text
    assert "rye:signed" not in text
    assert re.search(r"again\.sh changed since pinned pinned [0-9a-f]{12} → now", words(text))
    assert "pins &#39;notes/gone&#39;, which does not exist" in text
    assert "3 do not match" in words(visitor.get("/trust").text)
    assert "notes/fine 1.0.0 as pinned" in words(text)


def test_a_pinned_file_that_was_edited_and_not_signed_is_compared_too(visitor: Visitor) -> None:
    text = visitor.get("/trust/pins").text
    assert '<span class="added">+echo three</span>' in text
    assert "notes/edited 1.0.0 mismatch" in words(text)
    assert re.search(r"notes/edited changed since pinned pinned [0-9a-f]{12} → now", words(text))


def test_a_view_does_not_wait_for_many_lockfiles_and_later_ones_check_the_rest(
    project: Project, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pin_rows, "_VIEW_SECONDS", 0.0)
    monkeypatch.setattr(pin_rows, "_AT_LEAST", 1)
    site = Site(project.context, may_run=False)
    views = [pin_rows.checked_pins(site) for _ in range(5)]
    assert [(len(view.checks), view.now, view.total) for view in views] == [
        (1, 1, 4),
        (2, 1, 4),
        (3, 1, 4),
        (4, 1, 4),
        (4, 1, 4),
    ]
    assert [one.item_id for one in views[-1].bad] == ["notes/again", "notes/edited", "notes/gone"]
    # Until then, the page waits for the rest here.
    assert visitor.get("/trust/pins/events").text.endswith("event: reload\ndata: \n\n")
