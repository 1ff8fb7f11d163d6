"""node_runtime, with the node of this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from approved_project import approve
from rye_project import Project

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

HEADER = '// /// rye\n// version = "1.0.0"\n// executor_id = "node_runtime"\n// ///\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    path = f"{Path(NODE or '').parent}:/usr/bin:/bin"
    return Project(tmp_path, shipped_system=True, environ={"PATH": path})


def strips_types() -> bool:
    script = "process.stdout.write(String(Boolean(process.features.typescript)))"
    return subprocess.check_output([NODE or "", "-e", script]) == b"true"


def install_tsx(project: Project) -> None:
    """Put a substitute for tsx into the project, for a node that does not run TypeScript.

    It registers its hooks as tsx does, and strips the types that these tests use.
    """
    tsx = project.path / "node_modules" / "tsx"
    tsx.mkdir(parents=True)
    package = {"name": "tsx", "exports": {"./esm/api": "./api.mjs"}}
    (tsx / "package.json").write_text(json.dumps(package))
    (tsx / "api.mjs").write_text(
        "import { register as hook } from 'node:module';\n"
        "export const register = () => { hook('./hooks.mjs', import.meta.url); };\n"
    )
    (tsx / "hooks.mjs").write_text(
        "import { readFileSync } from 'node:fs';\n"
        "export async function load(url, context, next) {\n"
        "  if (!url.endsWith('.mts')) return next(url, context);\n"
        "  const text = readFileSync(new URL(url), 'utf8')"
        ".replace(': { a: number }', '').replace('): number', ')');\n"
        "  return { format: 'module', source: text, shortCircuit: true };\n}\n"
    )


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("tool.mjs", "export function main({ a }) { return { sum: a + 2 }; }"),
        ("tool.mjs", "export async function main({ a }) { return { sum: a + 2 }; }"),
        ("tool.mjs", "export const execute = (params, project) => ({ sum: params.a + 2 });"),
        ("tool.mjs", "export default ({ a }) => ({ sum: a + 2 });"),
        ("tool.cjs", "exports.main = ({ a }) => ({ sum: a + 2 });"),
        ("tool.cjs", "module.exports = ({ a }) => ({ sum: a + 2 });"),
        ("tool.cjs", "const f = { execute: (p) => ({ sum: p.a + 2 }) }; module.exports = f;"),
        ("tool.js", "module.exports = { main: ({ a }) => ({ sum: a + 2 }) };"),
    ],
)
def test_the_returned_value_is_the_data(project: Project, name: str, body: str) -> None:
    project.tool(name, HEADER + body)

    result = project.run("tool", {"a": 40})

    assert (result.error, result.data) == (None, {"sum": 42})


def test_console_output_of_a_tool_is_not_part_of_the_result(project: Project) -> None:
    project.tool(
        "tool.mjs",
        HEADER + "export function main() {\n"
        "  console.log('log');\n  process.stdout.write('raw\\n');\n  return 1;\n}\n",
    )

    result = project.run("tool")

    assert result.data == 1
    assert result.metadata["stderr"] == "log\nraw\n"


def test_a_large_result_is_complete(project: Project) -> None:
    project.tool("tool.mjs", HEADER + "export const main = () => 'x'.repeat(3000000);")

    assert project.run("tool").data == "x" * 3_000_000


def test_a_tool_that_returns_nothing_prints_nothing(project: Project) -> None:
    project.tool("tool.mjs", HEADER + "export function main() { console.log('hello'); }")

    assert project.run("tool").data == {"stdout": "", "stderr": "hello\n", "return_code": 0}


def test_a_thrown_error_shows_its_stack(project: Project) -> None:
    path = project.tool(
        "tool.mjs", HEADER + "export async function main() { throw new TypeError('lost'); }"
    )

    result = project.run("tool")

    assert result.metadata["return_code"] == 1
    assert result.data["stderr"].startswith("TypeError: lost\n")
    assert str(path) in result.data["stderr"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("(() => 1)", "returned a function, which JSON cannot express"),
        ("10n", "returned a value that JSON cannot express (Do not know how to serialize"),
    ],
)
def test_a_result_that_is_not_json_is_an_error(project: Project, value: str, problem: str) -> None:
    path = project.tool("tool.mjs", HEADER + f"export const main = () => {value};")

    error = project.run("tool").data["stderr"]

    assert error.startswith(f"{path} {problem}")
    assert error.endswith("return objects, arrays, strings, numbers, booleans and null\n")


def test_a_tool_that_exports_no_entry_point_is_an_error_that_names_them(project: Project) -> None:
    path = project.tool("tool.mjs", HEADER + "export const x = 1;")

    assert project.run("tool").data["stderr"] == (
        f"{path} exports neither main(params) nor execute(params, projectPath) nor a default "
        "function; export one of them\n"
    )


READ_STDIN = "JSON.parse(fs.readFileSync(0, 'utf8'))"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("tool.js", f"const fs = require('fs'); console.log({READ_STDIN}.a + 2);"),
        ("tool.cjs", f"const fs = require('fs'); console.log({READ_STDIN}.a + 2);"),
        ("tool.mjs", f"import fs from 'node:fs'; console.log({READ_STDIN}.a + 2);"),
        ("tool.mts", f"import fs from 'node:fs'; console.log({READ_STDIN}.a + 2);"),
        # The word "export" does not make a tool of a script.
        ("tool.js", f"// no exports\nconst fs = require('fs'); console.log({READ_STDIN}.a + 2);"),
        ("tool.mjs", f"import fs from 'node:fs'; // export\nconsole.log({READ_STDIN}.a + 2);"),
    ],
)
def test_a_file_that_exports_nothing_is_a_script(project: Project, name: str, body: str) -> None:
    install_tsx(project)
    project.tool(name, HEADER + body)

    result = project.run("tool", {"a": 40})

    assert (result.error, result.data) == (None, 42)
    assert "stderr" not in result.metadata


@pytest.mark.parametrize("comment", ["", "// export\n"])
def test_a_script_prints_before_during_and_after_loading(project: Project, comment: str) -> None:
    project.tool(
        "tool.mjs",
        HEADER + comment + "console.log('first');\nconsole.error('log');\n"
        "await new Promise((resolve) => process.stdout.write('second\\n', resolve));\n"
        "await new Promise((resolve) => setTimeout(resolve, 10));\n"
        "setTimeout(() => console.log('third'), 10);\n",
    )

    assert project.run("tool").data == {
        "stdout": "first\nsecond\nthird\n",
        "stderr": "log\n",
        "return_code": 0,
    }


@pytest.mark.parametrize("comment", ["", "// export\n"])
def test_a_script_may_exit_with_a_code(project: Project, comment: str) -> None:
    project.tool("tool.mjs", HEADER + comment + "console.log('out'); process.exit(3);")

    assert project.run("tool").data == {"stdout": "out\n", "stderr": "", "return_code": 3}


@pytest.mark.parametrize("comment", ["", "// export\n"])
def test_a_script_that_throws_shows_its_stack(project: Project, comment: str) -> None:
    path = project.tool("tool.mjs", HEADER + comment + "throw new TypeError('lost');")

    result = project.run("tool")

    assert result.metadata["return_code"] == 1
    assert result.data["stderr"].startswith("TypeError: lost\n")
    assert str(path) in result.data["stderr"]


def test_output_of_a_tool_that_loads_or_exits_is_its_log(project: Project) -> None:
    project.tool(
        "tool.mjs",
        HEADER + "console.log('loading');\nprocess.on('exit', () => console.log('exiting'));\n"
        "export const main = () => 1;",
    )

    result = project.run("tool")

    assert (result.data, result.metadata["stderr"]) == (1, "loading\nexiting\n")


TYPED = HEADER + "export const main = ({ a }: { a: number }): number => a + 2;"


def test_typescript_that_node_cannot_run_is_an_error_that_says_what_to_install(
    project: Project,
) -> None:
    if strips_types():
        pytest.skip("this node runs TypeScript")
    path = project.tool("tool.ts", TYPED)

    error = project.run("tool", {"a": 1}).data["stderr"]

    assert error.startswith(f"{path} is TypeScript, which node ")
    assert error.endswith(
        "does not run; install node 22.18 or newer, or run: npm install --save-dev tsx\n"
    )


def test_typescript_runs_with_node_or_with_the_tsx_of_the_project(project: Project) -> None:
    install_tsx(project)
    project.tool("tool.mts", TYPED)

    result = project.run("tool", {"a": 40})

    assert (result.error, result.data) == (None, 42)


def test_a_tool_of_the_user_does_not_run_the_tsx_of_a_checkout(project: Project) -> None:
    if strips_types():
        pytest.skip("this node runs TypeScript")
    mark = project.path / "ran"
    tsx = project.path / "node_modules" / "tsx"
    tsx.mkdir(parents=True)
    (tsx / "package.json").write_text(
        json.dumps({"name": "tsx", "exports": {"./esm/api": "./x.cjs"}})
    )
    (tsx / "x.cjs").write_text(f"require('fs').writeFileSync({json.dumps(str(mark))}, 'x');")
    project.tool("tool.ts", TYPED, space="user")

    error = project.run("tool", {"a": 1}).data["stderr"]

    assert "is TypeScript, which node" in error
    assert not mark.exists()


PLANTED = "require('fs').writeFileSync(MARK, 'x'); module.exports = 1;"
PLANTED_ESM = "import fs from 'node:fs'; fs.writeFileSync(MARK, 'x'); export default 1;"


CJS = "const x = LOAD;\nexports.main = () => x;\n"
ESM = "const x = LOAD;\nexport const main = () => x;\n"


@pytest.mark.parametrize("marker", ["package.json", "other.json"])
@pytest.mark.parametrize(
    ("load", "planted"),
    [
        ("require('./helper')", "helper"),
        ("require('./helper')", "helper.json"),
        ("require('./helper/index.xyz')", "helper/index.xyz"),
        ("require('./node_modules/helper.js')", "node_modules/helper.js"),
        ("require('../helper.js')", "../helper.js"),
        ("await import('./helper')", "helper"),
        ("await import('../helper.mjs')", "../helper.mjs"),
        ("await import('./.git/helper.mjs')", ".git/helper.mjs"),
        ("(await import('node:module')).createRequire(import.meta.url)('./helper')", "helper"),
    ],
)
def test_a_file_that_is_not_verified_is_not_loaded(
    project: Project, marker: str, load: str, planted: str
) -> None:
    name, text = ("tool.mjs", ESM) if "await" in load else ("tool.cjs", CJS)
    path = project.tool(f"a/b/{name}", HEADER + text.replace("LOAD", load))
    (path.parent / marker).write_text("{}")
    file = path.parent / planted
    mark = project.path / "planted"
    file.parent.mkdir(exist_ok=True)
    file.write_text((PLANTED_ESM if "mjs" in planted else PLANTED).replace("MARK", repr(str(mark))))

    approve(project.context)
    result = project.run("a/b/tool")

    assert f"{file.resolve()} is not verified and was not loaded; " in result.data["stderr"]
    assert not mark.exists()


@pytest.mark.parametrize(
    "body",
    [
        "import x from './helper.mjs';\nexport const main = () => x;",
        "export { default as main } from './helper.mjs';",
        "import fs from 'node:fs'; import x from './helper.mjs';\nexport const main = () => x;",
        "export const main = async () => (await import('./helper.mjs')).default;",
    ],
)
def test_an_unsigned_module_beside_a_signed_tool_does_not_run(
    project: Project, tmp_path: Path, body: str
) -> None:
    mark = tmp_path / "planted"
    project.tool("a/tool.mjs", HEADER + body)
    planted = PLANTED_ESM.replace("MARK", repr(str(mark)))
    file = project.tool("a/helper.mjs", planted, signed=False)

    alone = project.run("a/tool")
    (file.parent / "package.json").write_text("{}")
    marked = project.run("a/tool")

    assert f"{file} is not verified and was not loaded; " in alone.data["stderr"]
    assert marked.metadata["error_type"] == "UnsignedError"
    assert not mark.exists()


@pytest.mark.parametrize(
    ("tool", "loads"),
    [
        ("tool.mjs", "import x from './lib/x.cjs'; import y from 'dep'; export { main };"),
        ("tool.cjs", "const x = require('./lib/x.cjs'), y = require('dep'); exports.main = main;"),
    ],
)
def test_signed_modules_of_a_marked_folder_and_packages_are_loaded(
    project: Project, tool: str, loads: str
) -> None:
    path = project.tool(f"a/{tool}", HEADER + loads + "\nfunction main() { return x + y; }\n")
    project.tool("a/lib/x.cjs", "module.exports = require('path').sep.length;")
    (path.parent / "package.json").write_text("{}")
    package = project.path / "node_modules" / "dep"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"main": "./main.js"}')
    (package / "main.js").write_text("module.exports = require('./data.json');")
    (package / "data.json").write_text("41")

    result = project.run("a/tool")

    assert (result.error, result.data) == (None, 42)
