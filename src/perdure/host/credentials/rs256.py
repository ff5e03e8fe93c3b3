"""RSA signatures (RS256), if the optional package `cryptography` is installed.

Only this module uses the package.
"""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Protocol, cast

from perdure.core.credentials.google import Sign, UnusableKeyError

_PRIMITIVES = "cryptography.hazmat.primitives"


class _PrivateKey(Protocol):
    def sign(self, data: bytes, padding: object, algorithm: object) -> bytes: ...


class _Rsa(Protocol):
    RSAPrivateKey: type[_PrivateKey]


class _Padding(Protocol):
    PKCS1v15: Callable[[], object]


class _Hashes(Protocol):
    SHA256: Callable[[], object]


class _Serialization(Protocol):
    def load_pem_private_key(self, data: bytes, password: None) -> object: ...


class _Exceptions(Protocol):
    UnsupportedAlgorithm: type[Exception]


def make_signer() -> Sign | None:
    """A function that signs with a private key in PEM form; None without the package."""
    return None if importlib.util.find_spec("cryptography") is None else _sign


def _sign(pem: str, data: bytes) -> bytes:
    rsa = cast("_Rsa", importlib.import_module(f"{_PRIMITIVES}.asymmetric.rsa"))
    padding = cast("_Padding", importlib.import_module(f"{_PRIMITIVES}.asymmetric.padding"))
    hashes = cast("_Hashes", importlib.import_module(f"{_PRIMITIVES}.hashes"))
    key = _load_key(pem)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise UnusableKeyError("the private key is not an RSA key")
    return key.sign(data, padding.PKCS1v15(), hashes.SHA256())


def _load_key(pem: str) -> object:
    pems = cast("_Serialization", importlib.import_module(f"{_PRIMITIVES}.serialization"))
    raised = cast("_Exceptions", importlib.import_module("cryptography.exceptions"))
    try:
        return pems.load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, raised.UnsupportedAlgorithm):
        # Not chained: the package's message may quote the key.
        raise UnusableKeyError("the private key cannot be read") from None
