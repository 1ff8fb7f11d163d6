"""Ed25519 signatures: which are valid, and that malformed input raises nothing."""

import base64
import hashlib
import re
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from lilux.primitives.signing import (
    compute_key_fingerprint,
    generate_keypair,
    sign_hash,
    verify_signature,
)
from messages import exactly

HASH = hashlib.sha256(b"content").hexdigest()
PRIVATE, PUBLIC = generate_keypair()
SIGNATURE = sign_hash(HASH, PRIVATE)


def foreign_pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    return (
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    )


def encrypted_private() -> bytes:
    key = ed25519.Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))


class TestSignatures:
    def test_keys_are_ed25519_in_pkcs8_pem(self) -> None:
        assert PRIVATE.startswith(b"-----BEGIN PRIVATE KEY-----\n")
        assert PUBLIC.startswith(b"-----BEGIN PUBLIC KEY-----\n")
        private_key = load_pem_private_key(PRIVATE, password=None)
        assert isinstance(private_key, ed25519.Ed25519PrivateKey)
        assert isinstance(load_pem_public_key(PUBLIC), ed25519.Ed25519PublicKey)

    def test_every_pair_is_new(self) -> None:
        assert generate_keypair() != generate_keypair()

    def test_a_signature_is_valid_for_its_hash_and_key_only(self) -> None:
        other_hash = hashlib.sha256(b"changed").hexdigest()
        assert verify_signature(HASH, SIGNATURE, PUBLIC) is True
        assert verify_signature(other_hash, SIGNATURE, PUBLIC) is False
        assert verify_signature(HASH, SIGNATURE, generate_keypair()[1]) is False

    def test_the_ascii_hex_digest_is_signed(self) -> None:
        public_key = load_pem_public_key(PUBLIC)
        assert isinstance(public_key, ed25519.Ed25519PublicKey)
        public_key.verify(base64.urlsafe_b64decode(SIGNATURE), HASH.encode("ascii"))

    def test_keys_may_be_text(self) -> None:
        signature = sign_hash(HASH, PRIVATE.decode())
        assert signature == SIGNATURE
        assert verify_signature(HASH, signature, PUBLIC.decode()) is True
        assert compute_key_fingerprint(PUBLIC.decode()) == compute_key_fingerprint(PUBLIC)

    def test_signatures_are_base64url_and_padding_does_not_matter(self) -> None:
        assert re.fullmatch(r"[A-Za-z0-9_-]{86}==", SIGNATURE)
        assert verify_signature(HASH, SIGNATURE.rstrip("="), PUBLIC) is True

    def test_a_signature_with_both_special_characters_is_url_safe(self) -> None:
        hashes = (hashlib.sha256(bytes([number])).hexdigest() for number in range(256))
        signatures = [sign_hash(one, PRIVATE) for one in hashes]
        assert any("-" in one for one in signatures)
        assert any("_" in one for one in signatures)
        assert not any("+" in one or "/" in one for one in signatures)

    def test_a_flipped_bit_anywhere_is_refused(self) -> None:
        signature = base64.urlsafe_b64decode(SIGNATURE)
        for position in range(len(signature)):
            forged = bytearray(signature)
            forged[position] ^= 1
            text = base64.urlsafe_b64encode(forged).decode()
            assert verify_signature(HASH, text, PUBLIC) is False

    def test_a_second_spelling_of_a_signature_is_refused(self) -> None:
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        last = SIGNATURE[85]
        neighbour = alphabet[alphabet.index(last) + 1]
        respelled = SIGNATURE[:85] + neighbour + "=="
        assert base64.urlsafe_b64decode(respelled) == base64.urlsafe_b64decode(SIGNATURE)
        assert verify_signature(HASH, respelled, PUBLIC) is False

    @pytest.mark.parametrize(
        "signature",
        [
            "",
            "not base64!",
            SIGNATURE[:-1],
            SIGNATURE + "=",
            SIGNATURE[:85],
            SIGNATURE + "\n",
            " " + SIGNATURE,
            SIGNATURE[:40] + "\n" + SIGNATURE[40:],
            SIGNATURE[:10] + "+" + SIGNATURE[11:],
            SIGNATURE[:10] + "é" + SIGNATURE[11:],
            SIGNATURE[:10] + "\ud800" + SIGNATURE[11:],
            base64.urlsafe_b64encode(b"short").decode(),
            base64.urlsafe_b64encode(b"x" * 65).decode(),
            SIGNATURE.encode(),
            None,
            7,
        ],
        ids=lambda _: "signature",
    )
    def test_a_malformed_signature_is_false_and_raises_nothing(self, signature: str) -> None:
        assert verify_signature(HASH, signature, PUBLIC) is False

    @pytest.mark.parametrize(
        "key",
        [
            b"",
            b"garbage",
            b"\xff\xfe",
            "\ud800",
            None,
            PUBLIC[:-30],
            PRIVATE,
            foreign_pair()[1],
            x25519.X25519PrivateKey.generate()
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        ],
        ids=lambda _: "key",
    )
    def test_a_key_of_another_kind_is_false_and_raises_nothing(self, key: bytes) -> None:
        assert verify_signature(HASH, SIGNATURE, key) is False

    @pytest.mark.parametrize(
        "content_hash", ["", HASH[:-1], HASH + "0", HASH + "\n", "g" * 64, "٣" * 64, f" {HASH[1:]}"]
    )
    def test_a_malformed_hash_is_neither_signed_nor_verified(self, content_hash: str) -> None:
        message = "content_hash is not a SHA256 hex digest; pass its 64 hex digits"
        with pytest.raises(ValueError, match=exactly(message)):
            sign_hash(content_hash, PRIVATE)
        assert verify_signature(content_hash, SIGNATURE, PUBLIC) is False

    def test_a_hash_that_is_not_text_verifies_nothing(self) -> None:
        not_text: list[object] = [None, HASH.encode(), 7]
        for content_hash in not_text:
            assert verify_signature(content_hash, SIGNATURE, PUBLIC) is False  # type: ignore[arg-type]  # on purpose

    @pytest.mark.parametrize(
        "key", [b"", b"garbage", "\ud800", PUBLIC, foreign_pair()[0], encrypted_private()]
    )
    def test_signing_with_another_kind_of_key_is_refused(self, key: bytes) -> None:
        message = (
            "not the PKCS8 PEM of an Ed25519 private key without a password; "
            "generate one with generate_keypair()"
        )
        with pytest.raises(ValueError, match=exactly(message)):
            sign_hash(HASH, key)

    def test_a_fingerprint_is_of_the_pem_byte_for_byte(self) -> None:
        assert compute_key_fingerprint(PUBLIC) == hashlib.sha256(PUBLIC).hexdigest()[:16]
        assert compute_key_fingerprint(b"x") == "2d711642b726b044"
        assert compute_key_fingerprint(PUBLIC + b"\n") != compute_key_fingerprint(PUBLIC)


def test_importing_the_module_does_not_load_cryptography() -> None:
    code = "import sys, lilux.primitives.signing; print('cryptography' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False\n"


# The y coordinates of the eight points of small order, also in spellings that are not reduced.
SMALL_ORDER = [
    bytes(32),
    b"\1" + bytes(31),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
]


@pytest.mark.parametrize("sign", [0, 0x80])
@pytest.mark.parametrize("y", SMALL_ORDER, ids=range(len(SMALL_ORDER)))
def test_a_signature_that_anyone_can_make_for_a_key_of_small_order_is_refused(
    y: bytes, sign: int
) -> None:
    raw = y[:31] + bytes([y[31] | sign])
    key = ed25519.Ed25519PublicKey.from_public_bytes(raw)
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    # R is the identity and S is zero: valid for every message if the key is the identity, and for
    # one in two, four or eight messages if it is another point of small order.
    forged = base64.urlsafe_b64encode(b"\1" + bytes(63)).decode()
    hashes = [hashlib.sha256(bytes([number])).hexdigest() for number in range(64)]
    assert not any(verify_signature(each, forged, pem) for each in hashes)
