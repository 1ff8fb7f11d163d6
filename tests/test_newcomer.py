"""A newcomer opens the page in the example project, and reads all about a tool."""

from __future__ import annotations

import shutil
from pathlib import Path

from confined_machine import accept_missing_parts
from page_words import region
from processes import wait_until
from rye_command import rye
from ui_session import Visitor, started

ROOT = Path(__file__).parents[1]
KEY = next((ROOT / "examples" / ".ai" / "trusted_keys").iterdir()).stem
SIGNER = f"rye examples ({KEY})"
HIDDEN = shutil.ignore_patterns("lockfiles", "notes.md")  # of somebody who tried the example here
MAY = "reads notes writes notes network none"


def sections(visitor: Visitor) -> tuple[str, str, str]:
    """What the page says about `notes/add`: what it may do, who signed it, what it did last."""
    text = visitor.get("/tools/notes/add").text
    names = ("What it may do", "Who signed it", "What it did last")
    may, who, last = (region(text, name) for name in names)
    return may, who, last


def test_the_page_of_a_fresh_clone_explains_a_tool(tmp_path: Path) -> None:
    project, home = tmp_path / "examples", tmp_path / "home"
    shutil.copytree(ROOT / "examples", project, ignore=HIDDEN)
    home.mkdir()
    accept_missing_parts(home)
    with started(project, home, "--run") as page:
        visitor = page.enter()
        may, who, last = sections(visitor)
        assert may.startswith("Nothing now: a call would be refused.")
        assert MAY in may
        assert who.startswith(f"key not trusted Signed by {SIGNER}, not trusted")
        assert last == "It has not run in this project."
        text = visitor.get("/tools/notes/add").text
        assert f"approve it with: rye trust add {KEY}" in text
        assert "notes = Path(project_path" in text  # what the newcomer is asked to trust

        done = rye("trust", "add", KEY, cwd=project, user=home)
        assert done.code == 0, done.stderr
        may, who, last = sections(visitor)
        assert may.startswith(MAY)
        assert who.startswith(f"trusted Signed by {SIGNER} Pinned No; the first successful run")

        token = visitor.form_token("/tools/notes/add")
        answer = visitor.post("/tools/notes/add", {"csrf": token, "p.text": "try rye"})
        assert answer.status == 303, answer.text
        wait_until(lambda: sections(visitor)[2] != last, "the run is recorded")
        may, who, last = sections(visitor)
        assert last.startswith("ok just now, in ")
        assert "called by ui. The last run: ok" in last
        assert "Pinned Pinned" in who
        assert '{"notes": 1}' in visitor.get(answer.headers["location"]).text.replace("&#34;", '"')
