"""Lockfiles: the examples of the specification, unknown fields, and saving."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lilux.primitives.errors import LockfileError
from lilux.primitives.lockfile import Lockfile, LockfileManager, LockfileRoot
from lockfiles import DOCUMENTED, document, entry, lockfile
from messages import exactly

MODEST = settings(max_examples=60, deadline=None)
MANAGER = LockfileManager()
RESTORE = "restore it, or delete it and lock the tool again"
CORRECT = "correct the data and save again"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tool@1.0.0.lock.json"


def load_text(path: Path, text: str | bytes) -> Lockfile:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return MANAGER.load(path)


class TestExamplesOfTheSpecification:
    def test_data_structures(self) -> None:
        assert [one.name for one in fields(LockfileRoot)][:3] == ["tool_id", "version", "integrity"]
        assert [one.name for one in fields(Lockfile)][:6] == [
            "lockfile_version",
            "generated_at",
            "root",
            "resolved_chain",
            "registry",
            "verified_deps",
        ]
        made = Lockfile(1, "now", LockfileRoot("t", "1", "i"), [], {"url": "u"}, {"d": "h"})
        assert (made.registry, made.verified_deps) == ({"url": "u"}, {"d": "h"})
        made = Lockfile(1, "now", LockfileRoot("t", "1", "i"), [])
        assert (made.registry, made.verified_deps) == (None, None)

    def test_loading(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path.write_text(DOCUMENTED)
        manager = LockfileManager()
        if manager.exists(path):
            lockfile = manager.load(path)
            print(f"Tool: {lockfile.root.tool_id}")  # noqa: T201 - the example prints
            print(f"Version: {lockfile.root.version}")  # noqa: T201 - the example prints
            print(f"Chain: {len(lockfile.resolved_chain)} entries")  # noqa: T201 - as above
        assert capsys.readouterr().out == "Tool: my_tool\nVersion: 1.0.0\nChain: 1 entries\n"

    def test_saving(self, path: Path) -> None:
        manager = LockfileManager()
        lockfile = Lockfile(
            lockfile_version=1,
            generated_at="2026-01-30T12:00:00Z",
            root=LockfileRoot(tool_id="my_tool", version="1.0.0", integrity="abc123def456..."),
            resolved_chain=[{"tool_id": "subprocess", "version": "1.0.0", "integrity": "..."}],
        )
        saved_path = manager.save(lockfile, path)
        assert saved_path == path
        assert manager.load(saved_path) == lockfile

    def test_format(self, path: Path) -> None:
        loaded = load_text(path, DOCUMENTED)
        assert loaded.lockfile_version == 1
        assert loaded.generated_at == "2026-01-30T12:00:00Z"
        assert loaded.root == LockfileRoot("my_tool", "1.0.0", "abc123def456...")
        assert loaded.resolved_chain == json.loads(DOCUMENTED)["resolved_chain"]
        assert loaded.registry == json.loads(DOCUMENTED)["registry"]
        assert loaded.verified_deps is None
        MANAGER.save(loaded, path)
        assert json.loads(path.read_text()) == json.loads(DOCUMENTED)

    def test_explicit_paths_only(self) -> None:
        with pytest.raises(TypeError):
            MANAGER.load(tool_id="tool", version="1.0.0")  # type: ignore[call-arg]  # on purpose

    @pytest.mark.parametrize("valid", [True, False])
    def test_integration_with_an_orchestrator(self, path: Path, valid: bool) -> None:
        ran: list[Any] = []

        def create_lockfile(tool_id: str, version: str) -> Lockfile:
            return lockfile(root=LockfileRoot(tool_id, version, "new"))

        def execute_with_lockfile(tool_id: str, version: str, lockfile_path: Path) -> None:
            if MANAGER.exists(lockfile_path):
                locked = MANAGER.load(lockfile_path)
                if not valid:
                    locked = create_lockfile(tool_id, version)
                    MANAGER.save(locked, lockfile_path)
            else:
                locked = create_lockfile(tool_id, version)
                MANAGER.save(locked, lockfile_path)
            ran.append(locked.resolved_chain)

        execute_with_lockfile("tool", "1.0.0", path)
        execute_with_lockfile("tool", "1.0.0", path)
        assert ran == [[entry()], [entry()]]
        assert MANAGER.load(path).root.integrity == "new"

    def test_error_handling(self, path: Path) -> None:
        def outcome() -> str:
            try:
                MANAGER.load(path)
            except FileNotFoundError:
                return "Lockfile not found"
            except LockfileError as e:
                return f"Malformed lockfile: {e}"
            return "loaded"

        assert outcome() == "Lockfile not found"
        path.write_text("{}")
        assert outcome() == (
            f"Malformed lockfile: lockfile {path}: "
            f"missing required field 'lockfile_version'; {RESTORE}"
        )
        path.write_text(DOCUMENTED)
        assert outcome() == "loaded"

    def test_save_and_load(self, tmp_path: Path) -> None:
        lockfile = Lockfile(
            lockfile_version=1,
            generated_at="2026-01-30T12:00:00Z",
            root=LockfileRoot(tool_id="test", version="1.0.0", integrity="abc123"),
            resolved_chain=[],
        )
        path = tmp_path / "test@1.0.0.lock.json"
        MANAGER.save(lockfile, path)
        loaded = MANAGER.load(path)
        assert loaded.root.tool_id == "test"
        assert loaded.root.version == "1.0.0"

    def test_load_nonexistent(self) -> None:
        with pytest.raises(FileNotFoundError):
            MANAGER.load(Path("/nonexistent/path.lock.json"))


class TestUnknownFields:
    def test_they_are_kept_by_load_and_save(self, path: Path) -> None:
        data = document(future={"a": [1, {"b": None}]}, extra="a field that is called extra")
        data["root"]["signed_by"] = "someone"
        data["resolved_chain"][1]["platform"] = {"os": "linux"}
        loaded = load_text(path, json.dumps(data))
        assert loaded.extra == {
            "future": {"a": [1, {"b": None}]},
            "extra": "a field that is called extra",
        }
        assert loaded.root.extra == {"signed_by": "someone"}
        assert loaded.resolved_chain == data["resolved_chain"]
        MANAGER.save(loaded, path)
        assert json.loads(path.read_text()) == data
        assert MANAGER.load(path) == loaded

    @pytest.mark.parametrize("place", ["top", "root", "chain"])
    def test_they_are_kept_at_each_level(self, path: Path, place: str) -> None:
        data = document()
        where = {"top": data, "root": data["root"], "chain": data["resolved_chain"][0]}[place]
        where["unknown"] = 1
        MANAGER.save(load_text(path, json.dumps(data)), path)
        assert json.loads(path.read_text()) == data

    def test_the_documented_fields_come_first(self, path: Path) -> None:
        root = LockfileRoot("t", "1", "i", extra={"a": 1})
        MANAGER.save(lockfile(root=root, verified_deps={}, extra={"z": 1, "a": 2}), path)
        saved = json.loads(path.read_text())
        assert list(saved) == [
            "lockfile_version",
            "generated_at",
            "root",
            "resolved_chain",
            "verified_deps",
            "a",
            "z",
        ]
        assert list(saved["root"]) == ["tool_id", "version", "integrity", "a"]

    @pytest.mark.parametrize(
        ("bad", "fault"),
        [
            (lockfile(extra={"root": 1}), "the documented field 'root' is in 'extra'"),
            (lockfile(extra={"registry": {}}), "the documented field 'registry' is in 'extra'"),
            (
                lockfile(root=LockfileRoot("t", "1", "i", extra={"version": "2"})),
                "the documented field 'version' is in 'root.extra'",
            ),
        ],
    )
    def test_they_cannot_override_a_documented_one(
        self, path: Path, bad: Lockfile, fault: str
    ) -> None:
        message = f"cannot save lockfile {path}: {fault}; {CORRECT}"
        with pytest.raises(LockfileError, match=exactly(message)):
            MANAGER.save(bad, path)


FIELD_ON_ONE_LINE = re.compile(r' *"(?:[^"\\]|\\.)*": .*,')
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)
NEW_NAMES = TEXT.map(lambda text: f"x-{text}")
EXTRAS: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(
    NEW_NAMES, VALUES, max_size=2
)
ENTRIES = st.builds(
    lambda known, unknown: unknown | known,
    st.fixed_dictionaries(
        {"integrity": TEXT.filter(bool)},
        optional={"item_id": TEXT, "space": TEXT, "version": TEXT, "executor_id": st.none() | TEXT},
    ),
    EXTRAS,
)
LOCKFILES = st.builds(
    Lockfile,
    lockfile_version=st.just(1),
    generated_at=TEXT,
    root=st.builds(
        LockfileRoot, tool_id=TEXT, version=TEXT, integrity=TEXT.filter(bool), extra=EXTRAS
    ),
    resolved_chain=st.lists(ENTRIES, max_size=3),
    registry=st.none() | OBJECTS,
    verified_deps=st.none() | OBJECTS,
    extra=EXTRAS,
)


class TestSaving:
    @MODEST
    @given(LOCKFILES)
    @example(lockfile(registry={'"': '\\"', "\\u0022": "\u2028\x00\x7f"}))
    def test_a_saved_lockfile_is_loaded_unchanged(
        self, tmp_path_factory: pytest.TempPathFactory, original: Lockfile
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "round-trip.lock.json"
        MANAGER.save(original, path)
        first = path.read_bytes()
        loaded = MANAGER.load(path)
        assert loaded == original
        MANAGER.save(loaded, path)
        assert path.read_bytes() == first

    @MODEST
    @given(LOCKFILES, st.data())
    def test_a_repeated_line_is_never_accepted(
        self, tmp_path_factory: pytest.TempPathFactory, original: Lockfile, data: st.DataObject
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "repeated.lock.json"
        lines = MANAGER.save(original, path).read_text().split("\n")
        keyed = [number for number, line in enumerate(lines) if FIELD_ON_ONE_LINE.fullmatch(line)]
        number = data.draw(st.sampled_from(keyed))
        lines.insert(number, lines[number])
        with pytest.raises(LockfileError, match=r": duplicate key in '"):
            load_text(path, "\n".join(lines))

    def test_the_file_is_indented_utf8_json_with_a_final_newline(self, path: Path) -> None:
        MANAGER.save(lockfile(generated_at="später", resolved_chain=[], verified_deps={}), path)
        assert path.read_text(encoding="utf-8") == (
            "{\n"
            '  "lockfile_version": 1,\n'
            '  "generated_at": "später",\n'
            '  "root": {\n'
            '    "tool_id": "a/tool",\n'
            '    "version": "1.0.0",\n'
            f'    "integrity": "{"r" * 64}"\n'
            "  },\n"
            '  "resolved_chain": [],\n'
            '  "verified_deps": {}\n'
            "}\n"
        )

    def test_the_order_of_keys_makes_no_difference(self, path: Path) -> None:
        chain = [{"integrity": "i", "item_id": "x"}]
        first = MANAGER.save(lockfile(registry={"a": 1, "b": 2}), path).read_bytes()
        second = lockfile(registry={"b": 2, "a": 1}, resolved_chain=chain)
        assert MANAGER.save(second, path).read_bytes() == first

    def test_the_parent_folder_is_not_created(self, tmp_path: Path) -> None:
        folder = tmp_path / "lockfiles"
        with pytest.raises(FileNotFoundError) as caught:
            MANAGER.save(lockfile(), folder / "a.lock.json")
        assert str(caught.value) == (
            f"[Errno 2] the folder of the lockfile does not exist; create it first: '{folder}'"
        )
        assert not folder.exists()

    @pytest.mark.parametrize(
        ("bad", "fault"),
        [
            (lockfile(generated_at=5), f"expected str, got int in 'generated_at'; {CORRECT}"),
            (lockfile(lockfile_version=2), f"version 2 is not supported, only 1; {CORRECT}"),
            (lockfile(root={}), f"expected LockfileRoot, got dict in 'root'; {CORRECT}"),
            (
                lockfile(resolved_chain=[entry(integrity=...)]),
                f"missing required field 'resolved_chain[0].integrity'; {CORRECT}",
            ),
            (
                lockfile(registry={"n": [float("nan")]}),
                "$.registry.n[0]: nan is not a JSON number; use a finite number or null",
            ),
            (lockfile(registry={1: 2}), "$.registry: a key is int, not str; use string keys"),
            (
                lockfile(registry={"at": b"x"}),
                "$.registry.at: bytes cannot be written as JSON; convert it to a JSON type first",
            ),
            (
                lockfile(registry={"big": "x" * 5_000_000}),
                f"larger than 4194304 bytes; {CORRECT}",
            ),
        ],
    )
    def test_data_that_cannot_be_loaded_is_not_saved(
        self, path: Path, bad: Lockfile, fault: str
    ) -> None:
        path.write_text(DOCUMENTED)
        with pytest.raises(LockfileError, match=exactly(f"cannot save lockfile {path}: {fault}")):
            MANAGER.save(bad, path)
        assert path.read_text() == DOCUMENTED
        assert list(path.parent.iterdir()) == [path]

    def test_concurrent_saves_leave_one_whole_file(self, path: Path) -> None:
        code = (
            "import sys\n"
            "from pathlib import Path\n"
            "from lilux.primitives.lockfile import Lockfile, LockfileManager, LockfileRoot\n"
            "name = sys.argv[2]\n"
            "lockfile = Lockfile(1, 'now', LockfileRoot(name, '1', name),\n"
            "    [{'item_id': name, 'integrity': name * 64}] * int(sys.argv[3]))\n"
            "print('ready', flush=True)\n"
            "sys.stdin.read()\n"
            "for _ in range(15):\n"
            "    LockfileManager().save(lockfile, Path(sys.argv[1]))\n"
        )
        lengths = {"a": 1000, "b": 2000, "c": 3000}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        writers = [
            subprocess.Popen([sys.executable, "-c", code, str(path), name, str(length)], **pipes)  # type: ignore[call-overload]  # a dict has one value type
            for name, length in lengths.items()
        ]
        for writer in writers:
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            writer.stdin.close()
        loads = 0
        while loads == 0 or any(writer.poll() is None for writer in writers):
            if MANAGER.exists(path):
                loaded = MANAGER.load(path)
                name = loaded.root.tool_id
                assert (
                    loaded.resolved_chain
                    == [{"integrity": name * 64, "item_id": name}] * (lengths[name])
                )
                loads += 1
        for writer in writers:
            with writer:
                assert writer.wait(timeout=60) == 0
        assert MANAGER.load(path).root.tool_id in lengths
        assert list(path.parent.iterdir()) == [path]


def test_importing_the_module_loads_neither_msgspec_nor_cryptography() -> None:
    code = (
        "import sys, lilux.primitives.lockfile\n"
        "print([name for name in ('msgspec', 'cryptography', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"
