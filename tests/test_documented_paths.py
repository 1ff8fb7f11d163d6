"""Every import path that the specification documents works."""

from __future__ import annotations

import importlib

import pytest

DOCUMENTED = [
    ("lilux.primitives.subprocess", "SubprocessPrimitive SubprocessResult SpawnResult KillResult"),
    ("lilux.primitives.subprocess", "StatusResult"),
    ("lilux.primitives.http_client", "HttpClientPrimitive HttpResult ReturnSink"),
    ("lilux.primitives.signing", "generate_keypair sign_hash verify_signature save_keypair"),
    ("lilux.primitives.signing", "load_keypair ensure_keypair compute_key_fingerprint"),
    ("lilux.primitives.integrity", "compute_integrity canonical_json"),
    ("lilux.primitives.lockfile", "LockfileManager Lockfile LockfileRoot"),
    ("lilux.primitives.errors", "LockfileError IntegrityError AuthenticationRequired"),
    ("lilux.runtime.env_resolver", "EnvResolver"),
    ("lilux.runtime.auth", "AuthStore"),
    ("lilux.schemas.schema_validator", "SchemaValidator ValidationResult validate_parameters"),
    ("rye.executor.integrity_verifier", "IntegrityVerifier"),
]


@pytest.mark.parametrize(("module", "names"), DOCUMENTED)
def test_a_documented_import_path_works(module: str, names: str) -> None:
    found = importlib.import_module(module)
    for name in names.split():
        assert getattr(found, name).__name__ == name
