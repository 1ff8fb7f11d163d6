"""Lilux: a microkernel of stateless, async primitives.

These are the public names. Each is imported on first use, so importing this package is fast.
"""

# ruff: noqa: F401 - the imports at the end are for type checkers

from lilux.exports import lazy_exports

# Type checkers treat this as typing.TYPE_CHECKING, without the cost of importing typing.
TYPE_CHECKING = False

_MODULES = {
    "AuthError": "lilux.primitives.errors",
    "AuthStore": "lilux.runtime.auth",
    "AuthenticationRequired": "lilux.primitives.errors",
    "BlockingSubprocess": "lilux.primitives.subprocess.blocking",
    "ConfigurationError": "lilux.primitives.errors",
    "Confinement": "lilux.primitives.subprocess.confinement",
    "ConfinementLimits": "lilux.primitives.subprocess.confinement",
    "ConfinementReport": "lilux.primitives.subprocess.confinement",
    "Dialogue": "lilux.primitives.subprocess.dialogue",
    "EnvResolver": "lilux.runtime.env_resolver",
    "HelperError": "lilux.primitives.errors",
    "HttpClientPrimitive": "lilux.primitives.http_client",
    "HttpResult": "lilux.primitives.http_client.result",
    "IntegrityError": "lilux.primitives.errors",
    "KeyFileError": "lilux.primitives.errors",
    "KillResult": "lilux.primitives.subprocess",
    "LiluxError": "lilux.primitives.errors",
    "Lockfile": "lilux.primitives.lockfile",
    "LockfileError": "lilux.primitives.errors",
    "LockfileManager": "lilux.primitives.lockfile",
    "LockfileRoot": "lilux.primitives.lockfile",
    "MissingPart": "lilux.primitives.subprocess.confinement",
    "RefreshError": "lilux.primitives.errors",
    "ReturnSink": "lilux.primitives.http_client.sinks",
    "SchemaError": "lilux.primitives.errors",
    "SchemaValidator": "lilux.schemas.schema_validator",
    "SpawnResult": "lilux.primitives.subprocess",
    "StatusResult": "lilux.primitives.subprocess",
    "SubprocessPrimitive": "lilux.primitives.subprocess",
    "SubprocessResult": "lilux.primitives.subprocess.result",
    "ValidationResult": "lilux.schemas.schema_validator",
    "canonical_json": "lilux.primitives.integrity",
    "compute_integrity": "lilux.primitives.integrity",
    "compute_key_fingerprint": "lilux.primitives.signing.identity",
    "ensure_keypair": "lilux.primitives.signing",
    "generate_keypair": "lilux.primitives.signing",
    "load_keypair": "lilux.primitives.signing",
    "save_keypair": "lilux.primitives.signing",
    "sign_hash": "lilux.primitives.signing",
    "validate_parameters": "lilux.schemas.schema_validator",
    "verify_signature": "lilux.primitives.signing",
}

__all__ = sorted(_MODULES)  # noqa: PLE0605 - the names are listed once, with their modules


__getattr__ = lazy_exports(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from lilux.primitives.errors import (
        AuthenticationRequired,
        AuthError,
        ConfigurationError,
        HelperError,
        IntegrityError,
        KeyFileError,
        LiluxError,
        LockfileError,
        RefreshError,
        SchemaError,
    )
    from lilux.primitives.http_client import HttpClientPrimitive
    from lilux.primitives.http_client.result import HttpResult
    from lilux.primitives.http_client.sinks import ReturnSink
    from lilux.primitives.integrity import canonical_json, compute_integrity
    from lilux.primitives.lockfile import Lockfile, LockfileManager, LockfileRoot
    from lilux.primitives.signing import (
        compute_key_fingerprint,
        ensure_keypair,
        generate_keypair,
        load_keypair,
        save_keypair,
        sign_hash,
        verify_signature,
    )
    from lilux.primitives.subprocess import (
        KillResult,
        SpawnResult,
        StatusResult,
        SubprocessPrimitive,
    )
    from lilux.primitives.subprocess.blocking import BlockingSubprocess
    from lilux.primitives.subprocess.confinement import (
        Confinement,
        ConfinementLimits,
        ConfinementReport,
        MissingPart,
    )
    from lilux.primitives.subprocess.dialogue import Dialogue
    from lilux.primitives.subprocess.result import SubprocessResult
    from lilux.runtime.auth import AuthStore
    from lilux.runtime.env_resolver import EnvResolver
    from lilux.schemas.schema_validator import (
        SchemaValidator,
        ValidationResult,
        validate_parameters,
    )
