"""Calls with a warm disk cache: what is reused, and what is decided again every time."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lilux.primitives.lockfile import Lockfile, LockfileRoot
from lilux.primitives.signing import compute_key_fingerprint
from rye.cache.disk import cache_of
from rye.executor.locks.file import lockfile_from_json, lockfile_to_json
from rye.items.element import Metadata, metadata_from_json, metadata_to_json
from rye.trust.key_format import render_trusted_key, trusted_key
from rye_project import Project
from trust_world import CREATED, Key

TOOL = """\
#!/usr/bin/env bash
# /// rye
# version = "1.0.0"
# executor_id = "rye/core/runtimes/bash_runtime"
# [config_schema]
# type = "object"
# additionalProperties = false
# [config_schema.properties.word]
# type = "string"
# default = "hello"
# ///
echo "$RYE_PARAM_WORD"
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    project.tool("say.sh", TOOL)
    return project


def entries(project: Project) -> Iterator[Path]:
    return (project.user / ".ai" / "cache").rglob("*")


def said(project: Project, **parameters: str) -> str:
    result = project.run("say", parameters)
    assert result.success, result.error
    return str(result.data["stdout"])


def trust_another_key(project: Project) -> tuple[Key, Path]:
    """Sign the tool with another trusted key; return the key and its trust store entry."""
    key = Key.new()
    folder = project.user / ".ai" / "trusted_keys"
    folder.mkdir(mode=0o700)
    entry = folder / f"{key.fingerprint}.toml"
    entry.write_bytes(render_trusted_key(trusted_key(key.public, "alice", CREATED)))
    entry.chmod(0o600)
    tool = project.path / ".ai" / "tools" / "say.sh"
    tool.write_bytes(key.sign(TOOL.encode()))
    return key, entry


def test_later_processes_find_everything_and_give_the_same_result(project: Project) -> None:
    assert said(project) == "hello\n"
    kept = {path: path.stat().st_mtime_ns for path in entries(project) if path.is_file()}
    assert len(kept) >= 8
    assert said(project) == "hello\n"
    # The first run wrote the lockfile; the second was the first to read it.
    before = {path: path.stat().st_mtime_ns for path in entries(project) if path.is_file()}
    assert len(before) == len(kept) + 1
    assert said(project) == "hello\n"
    assert {path: path.stat().st_mtime_ns for path in entries(project) if path.is_file()} == before


def test_a_cache_full_of_garbage_is_not_an_error(project: Project) -> None:
    said(project)
    for path in [one for one in entries(project) if one.is_file()]:
        path.write_bytes(b"rubbish")
    assert said(project) == "hello\n"
    assert said(project, word="again") == "again\n"


def test_a_deleted_cache_is_not_an_error(project: Project) -> None:
    said(project)
    shutil.rmtree(project.user / ".ai" / "cache")
    assert said(project) == "hello\n"


class TestTrustIsNotCached:
    def test_a_key_that_the_user_no_longer_trusts(self, project: Project) -> None:
        key, entry = trust_another_key(project)
        assert said(project) == said(project) == "hello\n"
        entry.unlink()
        result = project.run("say", use_lockfile=False)
        assert result.metadata["error_type"] == "UntrustedKeyError"
        assert f"is signed by key {key.fingerprint}, which you do not trust" in str(result.error)

    def test_an_entry_of_the_trust_store_that_others_can_write(self, project: Project) -> None:
        _, entry = trust_another_key(project)
        assert said(project) == said(project) == "hello\n"
        entry.chmod(0o622)
        result = project.run("say", use_lockfile=False)
        assert result.metadata["error_type"] == "KeyStoreError"

    def test_an_approval_that_is_removed(self, project: Project) -> None:
        key, entry = trust_another_key(project)
        listed = project.path / ".ai" / "trusted_keys"
        listed.mkdir()
        entry.rename(listed / entry.name)
        refused = project.run("say")
        assert refused.metadata["error_type"] == "UntrustedKeyError"
        from rye.trust.store import TrustStore

        TrustStore(project.context).approve(key.fingerprint)
        assert said(project) == said(project) == "hello\n"
        (project.user / ".ai" / "approved_keys" / entry.name).unlink()
        refused = project.run("say", use_lockfile=False)
        assert refused.metadata["error_type"] == "UntrustedKeyError"
        assert f"approve it with: rye trust add {key.fingerprint}" in str(refused.error)

    def test_a_signature_that_was_verified_under_another_key_is_verified_again(
        self, project: Project
    ) -> None:
        """Two keys may have the same 64-bit fingerprint; an entry has the hash of the whole key."""
        said(project)
        own = (project.user / ".ai" / "keys" / "public_key.pem").read_bytes()
        tool = project.path / ".ai" / "tools" / "say.sh"
        forged = tool.read_bytes().replace(b"echo", b"exit")
        from lilux.sha256 import sha256

        cache = cache_of(project.context.user_space)
        known = {
            "content_hash": sha256(forged).hexdigest(),
            "fingerprint": compute_key_fingerprint(own),
            "signed_at": "20261103T142530Z",
            "public_key_sha256": sha256(Key.new().public).hexdigest(),
        }
        cache.keep("signature #", sha256(forged).hexdigest(), known)
        cache.flush()
        tool.write_bytes(forged)
        result = project.run("say", use_lockfile=False)
        assert result.metadata["error_type"] == "ChangedError"

    def test_a_forged_signature_stays_forged(self, project: Project) -> None:
        own = (project.user / ".ai" / "keys" / "public_key.pem").read_bytes()
        forger = Key.new()
        forged = forger.sign(TOOL.encode()).replace(
            forger.fingerprint.encode(), compute_key_fingerprint(own).encode()
        )
        (project.path / ".ai" / "tools" / "say.sh").write_bytes(forged)
        for _ in range(2):
            assert project.run("say").metadata["error_type"] == "ForgedError"

    def test_a_release_key_is_trusted_only_in_its_space(self, project: Project) -> None:
        """A copy of a shipped file has the same bytes, and so the same cache entry."""
        said(project)
        shipped = project.system / ".ai/tools/rye/core/runtimes/bash_runtime.yaml"
        copied = project.path / ".ai/tools/copied.yaml"
        copied.write_bytes(shipped.read_bytes())
        result = project.run("copied")
        assert result.metadata["error_type"] == "UntrustedKeyError"
        assert "but not for this copy" in str(result.error)


class TestChangedFiles:
    def test_a_changed_tool_is_refused(self, project: Project) -> None:
        said(project)
        tool = project.path / ".ai" / "tools" / "say.sh"
        tool.write_bytes(tool.read_bytes() + b"echo more\n")
        result = project.run("say", use_lockfile=False)
        assert result.metadata["error_type"] == "ChangedError"

    def test_a_changed_lockfile_is_read_again(self, project: Project) -> None:
        said(project)
        said(project)
        lockfile = project.lockfile("say")
        data = json.loads(lockfile.read_text())
        data["resolved_chain"][0]["integrity"] = "0" * 64
        lockfile.write_text(json.dumps(data))
        assert project.run("say").metadata["error_type"] == "LockUpgradeError"
        lockfile.write_text("{")
        assert project.run("say").metadata["error_type"] == "LockCorruptError"

    def test_the_same_bytes_under_another_extension_are_parsed_in_that_format(
        self, project: Project
    ) -> None:
        said(project)
        tool = project.path / ".ai" / "tools" / "say.sh"
        tool.rename(tool.with_suffix(".py"))
        result = project.run("say", use_lockfile=False)
        assert result.metadata["error_type"] == "ItemFormatError"

    def test_the_same_bytes_are_unsigned_where_the_line_is_not_a_comment(
        self, project: Project
    ) -> None:
        said(project)
        tool = project.path / ".ai" / "tools" / "say.sh"
        tool.rename(tool.with_suffix(".js"))
        result = project.run("say", use_lockfile=False)
        assert result.metadata["error_type"] == "UnsignedError"


def test_parameters_and_environment_are_not_kept(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True, environ={"TOKEN": "secret-of-environ"})
    asking = '# version = "1.0.0"\n# permissions.env = ["PASSWORD"]'
    project.tool("say.sh", TOOL.replace('# version = "1.0.0"', asking))
    (project.path / ".env").write_text("PASSWORD=secret-of-dotenv\n")
    said(project)
    assert said(project, word="secret-of-caller") == "secret-of-caller\n"
    files = [path for path in entries(project) if path.is_file()]
    assert files
    for path in files:
        assert b"secret-of" not in path.read_bytes(), path


def test_wrong_parameters_are_refused_although_a_call_without_parameters_is_cached(
    project: Project,
) -> None:
    said(project)
    result = project.run("say", {"other": 1})
    assert result.metadata["error_type"] == "ParameterError"


def test_a_missing_required_parameter_is_refused_every_time(
    project: Project,
) -> None:
    needs = TOOL.replace('# type = "object"\n#', '# type = "object"\n# required = ["word"]\n#', 1)
    project.tool("needs.sh", needs.replace('# default = "hello"\n', ""))
    for _ in range(2):
        assert project.run("needs").metadata["error_type"] == "ParameterError"


def test_every_field_of_metadata_is_restored() -> None:
    fields = {one.name: one for one in dataclasses.fields(Metadata)}
    filled = Metadata(
        version="1.0.0",
        tool_type="tool",
        executor_id="a/b",
        category="c",
        description="d",
        config_schema={"type": "object"},
        env_config={"env": {"A": "1"}},
        config={"command": "x", "timeout": 1.5},
        anchor={"enabled": True},
        verify_deps={"enabled": False},
        inputs=("a", "b"),
        outputs=(),
        child_constraints={"a": {"min_version": "1"}},
        annotations={"read_only": True},
    )
    stored = json.loads(json.dumps(metadata_to_json(filled)))
    assert stored.keys() == fields.keys()
    assert metadata_from_json(stored) == filled
    empty = Metadata(executor_id=None)
    assert metadata_from_json(json.loads(json.dumps(metadata_to_json(empty)))) == empty
    assert metadata_from_json({"version": "1"}) is None
    assert metadata_from_json(None) is None


def test_every_field_of_a_lockfile_is_restored() -> None:
    filled = Lockfile(
        1,
        "2026-01-30T12:00:00Z",
        LockfileRoot("a", "1.0.0", "f" * 64, extra={"more": 1}),
        [{"item_id": "a", "integrity": "f" * 64, "executor_id": None}],
        {"url": "x"},
        {"lib.py": "e" * 64},
        {"future": [1]},
    )
    assert lockfile_from_json(json.loads(json.dumps(lockfile_to_json(filled)))) == filled


def test_a_cache_that_cannot_be_written_is_not_an_error(project: Project) -> None:
    cache = project.user / ".ai" / "cache"
    cache.write_text("in the way")
    assert said(project) == said(project) == "hello\n"
    assert cache.read_text() == "in the way"
