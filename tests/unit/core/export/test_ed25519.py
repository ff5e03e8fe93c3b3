"""Signatures are those of RFC 8032 and of another implementation."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.core.export import ed25519

ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize(
    ("secret", "public", "message", "signature"),
    [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            (
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bac"
                "c61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
            ),
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            (
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e"
                "458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ),
        ),
    ],
)
def test_the_vectors_of_the_standard(
    secret: str, public: str, message: str, signature: str
) -> None:
    key, text, signed = (bytes.fromhex(each) for each in (secret, message, signature))
    assert ed25519.public_key(key).hex() == public
    assert ed25519.sign(key, text) == signed
    assert ed25519.verify(bytes.fromhex(public), text, signed)


@settings(max_examples=40, deadline=None)
@given(secret=st.binary(min_size=32, max_size=32), message=st.binary(max_size=300))
def test_another_implementation_makes_the_same_signature(secret: bytes, message: bytes) -> None:
    other = Ed25519PrivateKey.from_private_bytes(secret)
    assert ed25519.public_key(secret) == other.public_key().public_bytes_raw()
    assert ed25519.sign(secret, message) == other.sign(message)


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 64 * 8 - 1), part=st.sampled_from(["key", "message", "signature"]))
def test_a_flipped_bit_is_found(place: int, part: str) -> None:
    secret = bytes(range(32))
    parts = {
        "key": ed25519.public_key(secret),
        "message": b"what was signed",
        "signature": ed25519.sign(secret, b"what was signed"),
    }
    flipped = bytearray(parts[part])
    flipped[place // 8 % len(flipped)] ^= 1 << place % 8
    parts[part] = bytes(flipped)
    assert not ed25519.verify(parts["key"], parts["message"], parts["signature"])


def test_another_form_of_the_same_signature_is_refused() -> None:
    secret, message = bytes(32), b"one form"
    signature = ed25519.sign(secret, message)
    answer = int.from_bytes(signature[32:], "little") + ORDER
    other = signature[:32] + answer.to_bytes(32, "little")
    assert not ed25519.verify(ed25519.public_key(secret), message, other)


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"32 bytes, not {length}"):
        ed25519.sign(bytes(length), b"")
    assert not ed25519.verify(bytes(length), b"", bytes(64))
    assert not ed25519.verify(bytes(32), b"", bytes(length) if length != 64 else bytes(65))


def test_bytes_that_are_no_point_are_no_key() -> None:
    assert not ed25519.verify(b"\xff" * 32, b"", bytes(64))
    assert not ed25519.verify(b"\x02" + bytes(31), b"", bytes(64))
