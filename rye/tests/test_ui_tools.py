"""The pages of the tools, by raw requests."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import records
from page_words import region, words
from processes import wait_until
from rye_project import Project
from ui_session import Served, Visitor, served_page

HOSTILE = "<script>alert(1)</script>\"'>\u202e\x1b[31m"

ADD = '''"""A tool."""

__version__ = "1.2.0"
__executor_id__ = "rye/core/runtimes/python_runtime"
__tool_description__ = "Adds a note."
PERMISSIONS = {"read": ["{project_path}"], "write": ["{project_path}/notes.md"]}
EXAMPLES = [{"params": {"text": "buy rye", "tags": ["a"]}, "expect": {"text": "buy rye"}}]
CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "the note", "minLength": 2},
        "count": {"type": "integer", "minimum": 1, "default": 1},
        "urgent": {"type": "boolean", "default": False},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "token": {"type": "string", "writeOnly": True},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def main(**given: object) -> object:
    return given
'''
SCRIPT = """# /// rye
# executor_id = "rye/core/runtimes/bash_runtime"
# version = "1.0.0"
# description = "Prints."
# ///
echo {}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("ui"), shipped_system=True)
    project.tool("notes/add.py", ADD)
    schema = {"type": "object", "properties": {"x<b>": {"type": "string", "description": HOSTILE}}}
    project.command("hostile", "/bin/echo", HOSTILE, description=HOSTILE, config_schema=schema)
    project.tool("notes/unsigned.sh", SCRIPT.format("x"), signed=False)
    drifting = project.tool("notes/drifting.sh", SCRIPT.format("one"))
    assert project.run("notes/drifting").success
    assert project.run("notes/add", {"text": "first"}).success
    drifting.write_text(SCRIPT.format("'two <b>'"))
    project.sign(drifting)
    _ = project.context
    return project


@pytest.fixture(scope="module")
def reader(project: Project) -> Iterator[Visitor]:
    with served_page(project) as page:
        yield page.enter()


@pytest.fixture(scope="module")
def page(project: Project) -> Iterator[Served]:
    with served_page(project, "--run") as page:
        yield page


@pytest.fixture(scope="module")
def caller(page: Served) -> Visitor:
    return page.enter()


def row_of(text: str, item_id: str) -> str:
    """The words in the row of a tool."""
    rows = [one for one in text.split("<tr>") if f'href="/tools/{item_id}"' in one]
    assert len(rows) == 1
    return words(rows[0])


def test_the_list_says_who_signed_what_it_may_do_and_how_it_went(reader: Visitor) -> None:
    text = reader.get("/").text
    assert row_of(text, "notes/add") == (
        "notes/add project Adds a note. you trusted pinned reads files writes files warm "
        "ok just now"
    )
    assert "not signed" in row_of(text, "notes/unsigned")
    assert "changed since pinned" in row_of(text, "notes/drifting")
    assert "unconfined" in row_of(text, "hostile")
    assert "never ran" in row_of(text, "rye/fs/read")
    assert text.index("notes/drifting") < text.index("rye/bash/bash")


def test_a_search_finds_tools_and_a_space_limits_them(reader: Visitor) -> None:
    found = reader.get("/?q=note").text
    assert "/tools/notes/add" in found
    assert "/tools/rye/bash/bash" not in found
    assert 'value="note"' in found
    assert "/tools/notes/add" not in reader.get("/?space=system").text
    assert "No tool matches." in reader.get("/?q=zzzzqqqq").text


def test_a_tools_page_says_what_it_may_do_who_signed_it_and_what_it_did_last(
    reader: Visitor,
) -> None:
    text = words(reader.get("/tools/notes/add").text)
    assert "reads the project, notes.md writes notes.md network none" in text
    assert re.search(r"trusted Signed by you \([0-9a-f]{16}\)", text)
    assert re.search(r"What it did last ok just now, in [\d.]+ m?s, called by python", text)
    assert "text (required) the note string, at least 2 characters" in text
    assert re.search(r"The last (run: ok|\d+ runs: all succeeded)", text)
    for part in ("Tool notes/add 1.2.0", "Runtime rye/core/runtimes/python_runtime", "Primitive"):
        assert part in text
    assert "supporting files rye_" in text


def test_a_page_without_run_has_no_form_that_acts(reader: Visitor) -> None:
    text = reader.get("/tools/notes/add").text
    assert 'method="post"' not in text
    assert "rye ui --run" in text


def test_what_a_tool_says_about_itself_stays_text(reader: Visitor, caller: Visitor) -> None:
    for visitor in (reader, caller):
        for path in ("/", "/tools/hostile", "/?q=alert"):
            text = visitor.get(path).text
            assert "alert(1)" in text, path
            assert "<script>alert" not in text
            assert "<b>" not in text
            assert "\u202e" not in text
            assert "\x1b" not in text


def test_the_content_of_a_file_stays_text(reader: Visitor) -> None:
    text = reader.get("/tools/notes/drifting?file=tool:drifting.sh").text
    assert "two &lt;b&gt;" in text
    assert "<b>" not in text


def test_a_refused_tool_shows_what_it_asks_for_and_its_file(
    reader: Visitor, project: Project
) -> None:
    text = reader.get("/tools/notes/unsigned").text
    assert region(text, "What it may do") == (
        "Nothing now: a call would be refused. Its file, which is not verified, asks for this: "
        "Everything that you can do. It declares no permissions, so it is not confined."
    )
    assert "This file is not verified." in region(text, "Files")
    assert "echo x" in region(text, "Files")
    assert "unconfined, by its own account" in row_of(reader.get("/").text, "notes/unsigned")


def test_a_tool_that_changed_after_it_was_signed_shows_the_change(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    tool = project.tool("notes/edited.sh", SCRIPT.format("one"))
    assert project.run("notes/edited").success
    tool.write_text(tool.read_text().replace("echo one", "echo two"))
    with served_page(project) as page:
        text = page.enter().get("/tools/notes/edited").text
    assert "changed after signing" in words(text)
    assert '<span class="removed">-echo one</span>' in text
    assert '<span class="added">+echo two</span>' in text
    assert "missing" not in region(text, "Files")


def test_a_file_outside_of_the_space_is_not_shown_by_a_link(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    secret = tmp_path / "private.sh"
    secret.write_text(SCRIPT.format("hunter2"))
    link = project.path / ".ai" / "tools" / "linked.sh"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(secret)
    with served_page(project) as page:
        assert "hunter2" not in page.enter().get("/tools/linked").text


def test_drift_is_marked_and_shown_as_a_difference(reader: Visitor) -> None:
    text = reader.get("/tools/notes/drifting").text
    shown = words(text)
    assert "A call would be refused." in shown
    assert "content differs from the pinned one" in shown
    assert '<span class="removed">-echo one</span>' in text
    assert '<span class="added">+echo &#39;two &lt;b&gt;&#39;</span>' in text


def test_a_pinned_version_that_is_gone_is_reported(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    tool = project.tool("say.sh", SCRIPT.format("one"))
    assert project.run("say").success
    tool.write_text(SCRIPT.format("two"))
    project.sign(tool)
    _ = project.context
    cache = project.user / ".ai" / "cache"
    subprocess.run(["chmod", "-R", "u+w", str(cache)], check=True)
    shutil.rmtree(cache)
    with served_page(project) as page:
        text = page.enter().get("/tools/say").text
    assert "The pinned version is not stored on this machine" in text
    assert "is not stored here" in text
    assert "changed since pinned" in text


def test_another_file_of_the_closure_can_be_read(reader: Visitor) -> None:
    text = reader.get("/tools/notes/add").text
    found = re.search(r'href="\?file=(runtime_library[^"#]+)#files"', text)
    assert found is not None
    assert 'aria-label="Content of rye_' in reader.get(f"/tools/notes/add?file={found[1]}").text
    outside = reader.get("/tools/notes/add?file=tool:../../../etc/passwd").text
    assert "root:" not in outside


def test_an_unknown_tool_is_not_found(reader: Visitor) -> None:
    answer = reader.get("/tools/notes/ad")
    assert answer.status == 404
    assert "notes/add" in answer.text


def test_a_wrong_form_shows_the_reason_beside_the_field_and_keeps_the_values(
    caller: Visitor, project: Project
) -> None:
    before = len(records(project))
    token = caller.form_token("/tools/notes/add")
    fields = {
        "csrf": token,
        "p.text": "x",
        "p.count": "many",
        "p.tags": '["kept"]',
        "p.token": "hush-hush",
    }
    answer = caller.post("/tools/notes/add", fields)
    assert answer.status == 400
    assert "expected an integer" in answer.text
    assert 'value="many"' in answer.text
    assert "[&#34;kept&#34;]" in answer.text
    assert "hush-hush" not in answer.text
    answer = caller.post("/tools/notes/add", {**fields, "p.count": "0"})
    assert "expected a number of at least 1" in answer.text
    assert "expected at least 2 characters" in answer.text
    answer = caller.post("/tools/notes/add", {"csrf": token})
    assert re.search(r'class="fault" id="field-1-fault">required<', answer.text)
    assert len(records(project)) == before


def test_the_form_runs_the_tool_with_the_values_by_their_types(
    caller: Visitor, project: Project
) -> None:
    token = caller.form_token("/tools/notes/add")
    answer = caller.post(
        "/tools/notes/add",
        {
            "csrf": token,
            "p.text": "two\r\nlines",
            "p.count": "3",
            "p.urgent": "true",
            "p.tags": '["a", "b"]',
        },
    )
    assert answer.status == 303
    run_page = answer.headers["location"]
    wait_until(lambda: "Where the time went" in caller.get(run_page).text, "the run has ended")
    last = records(project)[-1]
    assert last["item"] == "notes/add"
    assert last["outcome"] == "ok"
    assert caller.get("/tools/notes/add").text.count('class="bar-ok"') >= 2


def test_an_example_fills_in_the_form(caller: Visitor) -> None:
    text = caller.get("/tools/notes/add?example=1").text
    assert "buy rye</textarea>" in text
    assert "[&#34;a&#34;]</textarea>" in text
    assert "buy rye</textarea>" not in caller.get("/tools/notes/add?example=99").text


def test_a_secret_is_a_password_field_without_a_value(caller: Visitor) -> None:
    text = caller.get("/tools/notes/add").text
    found = re.search(r'<input type="password"[^>]*name="p.token"[^>]*>', text)
    assert found is not None
    assert "value=" not in found[0]
