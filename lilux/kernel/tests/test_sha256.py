"""SHA-256 by OpenSSL or by the interpreter: the same hash, chosen once."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from lilux.sha256 import sha256


@pytest.mark.parametrize("data", [b"", b"abc", bytes(range(256)) * 300])
def test_the_hash_is_the_one_of_hashlib(data: bytes) -> None:
    assert sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
    assert sha256(data).digest() == hashlib.sha256(data).digest()


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_interpreters_implementation_does_not_load_openssl() -> None:
    out = run(
        "import sys\n"
        "from lilux.sha256 import prefer_interpreter, sha256\n"
        "prefer_interpreter()\n"
        "print(sha256(b'abc').hexdigest(), '_hashlib' in sys.modules)"
    )
    assert out == f"{hashlib.sha256(b'abc').hexdigest()} False\n"


def test_openssl_stays_in_use() -> None:
    out = run(
        "import _hashlib\n"
        "from lilux.sha256 import prefer_interpreter, sha256\n"
        "sha256(b'')\n"
        "prefer_interpreter()\n"
        "print(isinstance(sha256(b''), _hashlib.HASH))"
    )
    assert out == "True\n"


def test_an_interpreter_without_an_implementation_uses_openssl() -> None:
    out = run(
        "import sys\n"
        "sys.modules['_sha256'] = sys.modules['_sha2'] = None\n"
        "from lilux.sha256 import prefer_interpreter, sha256\n"
        "prefer_interpreter()\n"
        "print(sha256(b'abc').hexdigest())"
    )
    assert out == f"{hashlib.sha256(b'abc').hexdigest()}\n"
