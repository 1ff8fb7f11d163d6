"""python_runtime and python_script_runtime."""

from __future__ import annotations

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from rye_project import Project

HEADER = '__version__ = "1.0.0"\n__executor_id__ = "{runtime}"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def python_tool(project: Project, body: str, runtime: str = "python_runtime") -> Path:
    return project.tool("tool.py", HEADER.format(runtime=runtime) + body)


@pytest.mark.parametrize(
    "body",
    [
        "def main(a, b=2):\n    return {'sum': a + b}\n",
        "async def main(a, b=2):\n    return {'sum': a + b}\n",
        "def execute(params, project_path):\n    return {'sum': params['a'] + 2}\n",
        "async def execute(params, project_path):\n    return {'sum': params['a'] + 2}\n",
        "def execute(*_):\n    return {'sum': 0}\ndef main(a):\n    return {'sum': a + 2}\n",
    ],
    ids=["main", "async-main", "execute", "async-execute", "main-before-execute"],
)
def test_the_returned_value_is_the_data(project: Project, body: str) -> None:
    python_tool(project, body)

    result = project.run("tool", {"a": 40})

    assert (result.error, result.data) == (None, {"sum": 42})


def test_execute_gets_the_path_of_the_project(project: Project) -> None:
    python_tool(project, "def execute(params, project_path):\n    return project_path\n")

    assert project.run("tool").data == str(project.path)


def test_output_of_a_tool_and_its_children_is_not_part_of_the_result(project: Project) -> None:
    python_tool(
        project,
        "import os, subprocess, sys\n"
        "def main():\n"
        "    print('{\"fake\": 1}')\n"
        "    os.write(1, b'raw\\n')\n"
        "    subprocess.run(['echo', 'child'])\n"
        "    return [1]\n",
    )

    result = project.run("tool")

    assert result.data == [1]
    assert sorted(result.metadata["stderr"].split()) == ["1}", "child", "raw", '{"fake":']


def test_the_data_of_a_tool_that_returns_none_is_its_output(project: Project) -> None:
    python_tool(project, "def main():\n    print('hello')\n")

    assert project.run("tool").data == {"stdout": "", "stderr": "hello\n", "return_code": 0}


def test_parameters_are_not_on_the_command_line(project: Project) -> None:
    python_tool(
        project,
        "def main(secret, big):\n"
        "    line = open('/proc/self/cmdline').read()\n"
        "    return [secret in line, len(big)]\n",
    )

    result = project.run("tool", {"secret": "swordfish", "big": "x" * 3_000_000})

    assert (result.error, result.data) == (None, [False, 3_000_000])


def test_an_exception_shows_the_frames_of_the_tool_only(project: Project) -> None:
    path = python_tool(project, "def main():\n    raise KeyError('lost')\n")

    result = project.run("tool")

    assert result.metadata["return_code"] == 1
    assert result.error == "'tool' ended with exit code 1: KeyError: 'lost'"
    stderr = result.data["stderr"]
    assert str(path) in stderr
    assert "rye_run_tool" not in stderr


@pytest.mark.parametrize(
    ("raised", "code", "stderr"),
    [("sys.exit(7)", 7, ""), ("sys.exit('no way')", 1, "no way\n"), ("sys.exit()", 0, "")],
)
def test_an_exit_is_honoured(project: Project, raised: str, code: int, stderr: str) -> None:
    python_tool(project, f"import sys\ndef main():\n    {raised}\n")

    result = project.run("tool")

    assert result.data == {"stdout": "", "stderr": stderr, "return_code": code}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("{'a': [1, {2}]}", "result['a'][1] is of type set"),
        ("{'a': float('nan')}", "result['a'] is the number nan"),
        ("{(1, 2): 3}", "result is a dict with a key of type tuple"),
        ("loop", "nested too deeply, or contains itself"),
    ],
)
def test_a_result_that_json_cannot_express_is_reported_with_its_place(
    project: Project, value: str, fault: str
) -> None:
    path = python_tool(project, f"loop = []\nloop.append(loop)\ndef main():\n    return {value}\n")

    error = project.run("tool").data["stderr"]

    assert error.startswith(f"{path} returned a value that JSON cannot express: result")
    assert error.endswith(f"{fault}; return dicts, lists, strings, numbers, booleans and None\n")


def test_a_signature_that_does_not_match_is_reported_without_a_traceback(project: Project) -> None:
    path = python_tool(project, "CONFIG_SCHEMA = {}\ndef main(name):\n    return name\n")

    assert project.run("tool", {"nam": "x"}).data["stderr"] == (
        f"{path}: main() got an unexpected keyword argument 'nam'; "
        "its signature must match its CONFIG_SCHEMA\n"
    )


def test_a_type_error_inside_the_tool_keeps_its_traceback(project: Project) -> None:
    python_tool(project, "def main():\n    return len(1)\n")

    assert "Traceback" in project.run("tool").data["stderr"]


def test_a_tool_that_defines_no_entry_point_is_an_error_that_names_them(project: Project) -> None:
    path = python_tool(project, "x = 1\n")

    assert project.run("tool").data["stderr"] == (
        f"{path} defines neither main(**params) nor execute(params, project_path); "
        "add one of them\n"
    )


def test_a_tool_named_like_a_module_does_not_replace_it(project: Project) -> None:
    project.tool(
        "json.py",
        HEADER.format(runtime="python_runtime")
        + "import json\ndef main():\n    return json.dumps([1])\n",
    )

    assert project.run("json").data == "[1]"


def test_a_dataclass_and_its_annotations_work_in_a_tool(project: Project) -> None:
    python_tool(
        project,
        "from dataclasses import asdict, dataclass\n"
        "@dataclass\nclass Point:\n    x: 'int'\n"
        "def main():\n    return asdict(Point(3))\n",
    )

    assert project.run("tool").data == {"x": 3}


def test_a_module_next_to_the_tool_is_imported_only_from_a_marked_folder(project: Project) -> None:
    text = HEADER.format(runtime="python_runtime") + (
        "from helper import N\ndef main():\n    return N\n"
    )
    project.tool("many/tool.py", text)
    project.tool("many/helper.py", "N = 5\n")

    alone = project.run("many/tool")
    project.tool("many/__init__.py", "")
    marked = project.run("many/tool")

    assert alone.data["stderr"].endswith(
        "hint: 'helper' is next to the tool, but modules are imported only from a verified "
        "folder; add an __init__.py and sign all its files\n"
    )
    assert (marked.error, marked.data) == (None, 5)


def test_an_unsigned_module_of_a_marked_folder_is_refused(project: Project) -> None:
    project.tool("many/tool.py", HEADER.format(runtime="python_runtime") + "def main(): pass\n")
    project.tool("many/__init__.py", "")
    project.tool("many/helper.py", "N = 5\n", signed=False)

    assert project.run("many/tool").metadata["error_type"] == "UnsignedError"


def test_planted_bytecode_does_not_run_in_place_of_verified_source(tmp_path: Path) -> None:
    own_python = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    project = Project(tmp_path, shipped_system=True, environ={"PATH": own_python})
    project.tool(
        "many/tool.py",
        HEADER.format(runtime="python_runtime")
        + "from helper import N\ndef main():\n    return N\n",
    )
    project.tool("many/__init__.py", "")
    helper = project.tool("many/helper.py", "N = 'signed'\n")
    evil = tmp_path / "evil.py"
    evil.write_text("N = 'planted'\n")
    # Unchecked: Python would use it even if the source differs.
    py_compile.compile(
        str(evil),
        cache_from_source(str(helper)),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    script = f"import sys; sys.path[0] = {str(helper.parent)!r}; import helper; print(helper.N)"

    assert project.run("python_runtime", {"script": script}).data["stdout"] == "planted\n"
    assert project.run("many/tool").data == "signed"


def test_python_runtime_called_directly_runs_a_script_like_python_c(project: Project) -> None:
    result = project.run(
        "python_runtime",
        {
            "script": "import sys\nprint(__name__, sys.argv, sys.path[-1] == '')\nsys.exit(3)",
            "args": ["x"],
        },
    )

    assert result.data == {
        "stdout": "__main__ ['-c', 'x'] True\n",
        "stderr": "",
        "return_code": 3,
    }


def test_a_file_in_the_project_cannot_replace_a_module_of_a_script(project: Project) -> None:
    (project.path / "colorsys.py").write_text("print('planted')\n")
    (project.path / "own.py").write_text("print('own')\n")

    result = project.run("python_runtime", {"script": "import colorsys, own"})

    assert result.data["stdout"] == "own\n"


def test_a_tool_named_like_the_runtime_is_a_tool(project: Project) -> None:
    header = '# /// rye\n# version = "1.0.0"\n# executor_id = "python_runtime"\n# ///\n'
    project.tool(
        "mine/python_runtime.pyw",
        header.replace('"python', '"rye/core/runtimes/python')
        + "def main(script):\n    return len(script)\n",
    )

    assert project.run("mine/python_runtime", {"script": "print(1)"}).data == 8


def test_python_runtime_called_directly_requires_a_script(project: Project) -> None:
    result = project.run("python_runtime", {"scrip": "1"})

    assert result.metadata["error_type"] == "ParameterError"


def test_a_script_tool_gets_parameters_and_project_as_arguments(project: Project) -> None:
    python_tool(
        project,
        "import json, sys\nif __name__ == '__main__':\n    print(json.dumps(sys.argv[1:]))\n",
        runtime="python_script_runtime",
    )

    assert project.run("tool", {"a": "it's {x} ${HOME}"}).data == [
        "--params",
        '{"a":"it\'s {x} ${HOME}"}',
        "--project-path",
        str(project.path),
    ]


def test_parameters_too_long_for_argv_are_an_error_that_names_python_runtime(
    project: Project,
) -> None:
    python_tool(project, "", runtime="python_script_runtime")

    result = project.run("tool", {"a": "x" * 200_000})

    assert result.metadata["error_type"] == "ArgumentTooLongError"
    assert "python_runtime" in (result.error or "")
