"""Ed25519 signatures (RFC 8032), without a dependency.

Meant for signing a file now and then: a signature takes some milliseconds. It does not run in
constant time, so it must not sign at the request of others who could measure it.
"""

import hashlib
from typing import Final

from perdure.schema.value import Value

SECRET_BYTES: Final = 32
PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

_P: Final = 2**255 - 19
_ORDER: Final = 2**252 + 27742317777372353535851937790883648493
_D: Final = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_ONE: Final = pow(2, (_P - 1) // 4, _P)


class _Point(Value):
    """A point of the curve in extended coordinates: x = X/Z, y = Y/Z, X * Y = Z * T."""

    x: int
    y: int
    z: int
    t: int


_BASE_Y: Final = 4 * pow(5, -1, _P) % _P
_NEUTRAL: Final = _Point(0, 1, 1, 0)


def public_key(secret: bytes) -> bytes:
    """The public key of 32 secret bytes."""
    scalar, _ = _expand(secret)
    return _compress(_multiply(scalar, _BASE))


def sign(secret: bytes, message: bytes) -> bytes:
    """The signature of a message, 64 bytes; the same for the same message and key."""
    scalar, prefix = _expand(secret)
    key = _compress(_multiply(scalar, _BASE))
    nonce = _number(prefix, message)
    commitment = _compress(_multiply(nonce, _BASE))
    answer = (nonce + _number(commitment, key, message) * scalar) % _ORDER
    return commitment + answer.to_bytes(32, "little")


def verify(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the owner of the key has signed the message. False for malformed input."""
    if len(key) != PUBLIC_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    owner, commitment = _decompress(key), _decompress(signature[:32])
    answer = int.from_bytes(signature[32:], "little")
    if owner is None or commitment is None or answer >= _ORDER:
        return False
    challenge = _number(signature[:32], key, message)
    return _equal(_multiply(answer, _BASE), _add(commitment, _multiply(challenge, owner)))


def _expand(secret: bytes) -> tuple[int, bytes]:
    """The scalar of a secret key, and the prefix of its nonces."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret key has {SECRET_BYTES} bytes, not {len(secret)}")
    digest = hashlib.sha512(secret).digest()
    scalar = int.from_bytes(digest[:32], "little")
    scalar &= (1 << 254) - 8
    return scalar | (1 << 254), digest[32:]


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % _ORDER


def _add(one: _Point, two: _Point) -> _Point:
    a = (one.y - one.x) * (two.y - two.x) % _P
    b = (one.y + one.x) * (two.y + two.x) % _P
    c = 2 * one.t * two.t * _D % _P
    d = 2 * one.z * two.z % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return _Point(e * f % _P, g * h % _P, f * g % _P, e * h % _P)


def _multiply(scalar: int, point: _Point) -> _Point:
    total = _NEUTRAL
    while scalar:
        if scalar & 1:
            total = _add(total, point)
        point = _add(point, point)
        scalar >>= 1
    return total


def _equal(one: _Point, two: _Point) -> bool:
    return (one.x * two.z - two.x * one.z) % _P == 0 and (one.y * two.z - two.y * one.z) % _P == 0


def _compress(point: _Point) -> bytes:
    inverse = pow(point.z, -1, _P)
    x, y = point.x * inverse % _P, point.y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decompress(data: bytes) -> _Point | None:
    """The point that 32 bytes stand for; None if there is none, or if they are not its one form."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    x = _recover_x(y, sign)
    return None if x is None else _Point(x, y, 1, x * y % _P)


def _recover_x(y: int, sign: int) -> int | None:
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT_OF_MINUS_ONE % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    return x if x & 1 == sign else _P - x


def _find_base() -> _Point:
    x = _recover_x(_BASE_Y, 0)
    assert x is not None
    return _Point(x, _BASE_Y, 1, x * _BASE_Y % _P)


_BASE: Final = _find_base()
