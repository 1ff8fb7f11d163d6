"""``rye new``: a tool from each template, and every refusal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loopback_http import LoopbackServer, respond
from rye.cli.new.templates import TEMPLATES
from rye_command import rye
from rye_console import Console

NODE = shutil.which("node")
UV = shutil.which("uv")


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path)


def run(console: Console, *args: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {
        "PATH": path,
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(console.user / "cache"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    done = rye("run", *args, cwd=console.path, user=console.user, env=env)
    assert done.code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("runtime", "extension", "data"),
    [
        ("python", ".py", True),
        ("python-script", ".py", True),
        pytest.param(
            "uv", ".py", True, marks=pytest.mark.skipif(UV is None, reason="uv is not installed")
        ),
        ("bash", ".sh", False),
        pytest.param(
            "node",
            ".mjs",
            True,
            marks=pytest.mark.skipif(NODE is None, reason="node is not installed"),
        ),
    ],
)
def test_a_new_tool_runs_with_its_parameters(
    console: Console, runtime: str, extension: str, data: bool
) -> None:
    made = console("new", "team/greet", "--runtime", runtime)

    path = console.path / ".ai" / "tools" / "team" / f"greet{extension}"
    if runtime == "uv":  # is not on the PATH of the console
        assert made.stderr.startswith("note: it cannot run here yet: the interpreter of ")
        assert "\n  rye check team/greet\n" in made.stdout
    else:
        assert (made.code, made.stderr) == (0, "")
        assert made.stdout == (
            f"created .ai/tools/team/{path.name}, signed with your key\n\nNext:\n"
            "  rye run team/greet name=you\n  rye sign team/greet   after every change\n"
        )
    assert "rye sign team/greet" in path.read_text()
    shown = run(console, "team/greet", "name=Ada", "times=2")
    if data:
        assert json.loads(shown) == {"greeting": "Hello, Ada! Hello, Ada!"}
    else:
        assert shown == "Hello, Ada!\nHello, Ada!\n"


def strips_types() -> bool:
    script = "process.stdout.write(String(Boolean(process.features.typescript)))"
    return NODE is not None and subprocess.check_output([NODE, "-e", script]) == b"true"


@pytest.mark.skipif(not strips_types(), reason="needs a node that strips types (22.18)")
def test_a_new_typescript_tool_runs(console: Console) -> None:
    assert console("new", "greet", "--runtime", "typescript").code == 0

    assert json.loads(run(console, "greet")) == {"greeting": "Hello, World!"}


def test_a_new_command_tool_runs(console: Console) -> None:
    assert console("new", "greet", "--runtime", "command").code == 0

    assert run(console, "greet", "name=%s $(id)") == "Hello, %s $(id)!\n"


def test_a_new_http_tool_runs(console: Console) -> None:
    assert console("new", "fetch", "--runtime", "http").code == 0

    with LoopbackServer() as server:
        url = server.on("/x", respond(200, json={"ok": 1}))
        assert json.loads(run(console, "fetch", f"url={url}")) == {"ok": 1}


def test_a_new_mcp_tool_runs(console: Console) -> None:
    pytest.importorskip("mcp", reason="the mcp extra is not installed")
    assert console("new", "find", "--runtime", "mcp").code == 0

    found = json.loads(run(console, "find", "query=read a file"))

    assert "rye/fs/read" in [tool["item_id"] for tool in found["tools"]]


def test_every_template_declares_its_runtime_and_the_description(console: Console) -> None:
    description = 'it\'s a "C:\\new" @@ITEM@@ é # {x}'
    for template in TEMPLATES:
        made = console.json(
            "new", f"t/{template.name}", "--runtime", template.name, "--description", description
        )
        shown = console.json("show", f"t/{template.name}")
        assert made["executor_id"] == shown["executor_id"] == template.executor_id
        assert shown["description"] == description


def test_a_runtime_can_be_named_by_its_id(console: Console) -> None:
    made = console.json("new", "a", "--runtime", "rye/core/runtimes/bash_runtime")

    assert made["path"].endswith("/a.sh")
    assert run(console, "a") == "Hello, World!\n"


def test_a_runtime_in_the_project_gives_a_bare_tool(console: Console) -> None:
    console.project.yaml(
        "runtimes/cat",
        tool_type="runtime",
        executor_id="rye/core/primitives/subprocess",
        env_config={"interpreter": {"type": "system_binary", "binary": "perl", "var": "PERL"}},
        config={"command": "cat", "args": ["{tool_path}"]},
    )

    made = console("new", "script", "--runtime", "runtimes/cat")

    assert made.code == 0, made.stderr
    assert made.stdout.endswith(
        "Next:\n  rye show script\n  rye sign script   after every change\n"
    )
    text = (console.path / ".ai" / "tools" / "script.pl").read_text()
    assert '# executor_id = "runtimes/cat"\n' in text


@pytest.mark.parametrize(
    ("extension", "line"),
    [
        (".lua", '-- executor_id = "runtimes/odd"\n'),
        (".py", '__executor_id__ = "runtimes/odd"\n'),
        (".yaml", 'executor_id: "runtimes/odd"\n'),
    ],
)
def test_a_runtime_without_a_known_interpreter_needs_an_extension(
    console: Console, extension: str, line: str
) -> None:
    console.project.yaml(
        "runtimes/odd",
        tool_type="runtime",
        executor_id="rye/core/primitives/subprocess",
        config={"command": "cat", "args": ["{tool_path}"]},
    )

    refused = console("new", "script", "--runtime", "odd")

    assert refused.code == 2
    assert refused.stderr == (
        "rye: missing extension for the runtime 'runtimes/odd': it does not declare which files it "
        "runs; pass one, for example: --extension .rb\n"
    )
    assert console("new", "script", "--runtime", "odd", "--extension", extension).code == 0
    path = console.path / ".ai" / "tools" / f"script{extension}"
    assert line in path.read_text()
    assert line in run(console, "script")


def test_an_unknown_runtime_lists_the_known_ones(console: Console) -> None:
    refused = console("new", "a", "--runtime", "cobol")

    assert refused.code == 2
    assert refused.stderr == (
        "rye: unknown runtime 'cobol': expected one of python, python-script, uv, bash, node, "
        "typescript, command, http, mcp, an interpreter such as perl, or the id of a runtime; "
        "see `rye new --help`\n"
    )
    assert list((console.path / ".ai" / "tools").iterdir()) == []


def test_a_tool_is_not_a_runtime(console: Console) -> None:
    refused = console("new", "a", "--runtime", "rye/fs/read")

    assert refused.code == 2
    assert ", not a runtime; use one of python," in refused.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../evil", "item id '../evil' has the part '..', which begins with a dot"),
        ("/etc/evil", "item id '/etc/evil' is an absolute path"),
        ("subprocess", "item id 'subprocess' is reserved for a primitive; choose another name"),
        (
            "rye/core/primitives/http_client",
            "item id 'rye/core/primitives/http_client' is reserved for a primitive",
        ),
        ("-x", "item id '-x' begins with a dash, like an option; choose a name without the dash"),
        ("hello.py", "item id 'hello.py' has a file extension; use hello"),
    ],
)
def test_an_invalid_name_is_refused(console: Console, name: str, message: str) -> None:
    refused = console("new", "--", name)

    assert refused.code == 2
    assert refused.stderr.startswith(f"rye: {message}")
    assert list((console.path / ".ai" / "tools").iterdir()) == []


def test_an_existing_tool_in_any_language_is_not_overwritten(console: Console) -> None:
    path = console.project.tool("team/a.sh", "echo precious\n", signed=False)

    refused = console("new", "team/a", "--runtime", "python")

    assert refused.code == 1
    assert refused.stderr == (
        "rye: 'team/a' already exists: .ai/tools/team/a.sh; choose another name, or remove that "
        "file\n"
    )
    assert [one.name for one in path.parent.iterdir()] == ["a.sh"]
    assert path.read_text() == "echo precious\n"


def test_no_tool_is_written_through_a_symlink_out_of_the_space(
    console: Console, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (console.path / ".ai" / "tools" / "team").symlink_to(elsewhere)

    refused = console("new", "team/a")

    assert refused.code == 1
    assert "a symbolic link points outside" in refused.stderr
    assert list(elsewhere.iterdir()) == []


def test_a_file_in_place_of_a_directory_is_reported(console: Console) -> None:
    console.project.tool("team", "x", signed=False)

    refused = console("new", "team/a")

    assert refused.code == 1
    assert "is not a directory; choose another name, or move that file" in refused.stderr


@pytest.mark.parametrize("description", ["two\nlines", "\x1b[31mred", "x" * 501])
def test_a_description_must_be_one_printable_line(console: Console, description: str) -> None:
    refused = console("new", "a", "--description", description)

    assert refused.code == 2
    assert refused.stderr == (
        "rye: invalid description: expected one line of at most 500 printable characters; "
        "shorten it; longer text can go into the file\n"
    )


def test_a_tool_in_the_user_space_runs_in_every_project(console: Console) -> None:
    made = console.json("new", "mine", "--space", "user", "--runtime", "bash")

    assert made["path"] == str(console.user / ".ai" / "tools" / "mine.sh")
    assert run(console, "mine") == "Hello, World!\n"


def test_a_note_names_the_item_that_the_id_no_longer_runs(console: Console) -> None:
    made = console("new", "rye/fs/read")

    assert made.code == 0
    assert made.stderr.startswith("note: 'rye/fs/read' no longer runs ")
    made = console("new", "team/bash_runtime")
    assert made.stderr.startswith("note: 'bash_runtime' no longer runs ")


def test_a_note_names_the_project_item_that_hides_the_new_tool(console: Console) -> None:
    console.project.tool("a.sh", "x", signed=False)

    made = console("new", "a", "--space", "user")

    assert made.stderr == "note: 'a' still runs .ai/tools/a.sh here\n"


def test_a_tool_for_another_interpreter_runs_on_its_first_line(console: Console) -> None:
    console("new", "report", "--runtime", "perl")
    path = console.path / ".ai/tools/report.pl"
    assert path.read_text().startswith("#!/usr/bin/env perl\n# rye:signed:")
    assert 'executor_id = "rye/core/runtimes/script_runtime"' in path.read_text()
    if shutil.which("perl"):
        path.write_text(path.read_text() + 'print "Hello, $ENV{RYE_PARAM_NAME}!\\n";\n')
        console("sign", "report")
        assert run(console, "report", "name=Ada") == "Hello, Ada!\n"
