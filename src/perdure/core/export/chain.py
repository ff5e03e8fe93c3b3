"""The hash chain over the records of an export, and the seal at its end.

The records are the Session, then its messages, then its events. The hash of each covers the one
before, so the last one stands for all of them and their order. The seal has that hash with a
signature; the file also has every hash, so that damage can be located.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeGuard

from perdure.core.export import ed25519
from perdure.core.text import jsonc
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

VERSION: Final = 1
LISTS: Final = ("messages", "events")
_START: Final = "perdure export 1"
_HASH_CHARS: Final = 64


class ExportDamageError(Exception):
    """The file is not what was exported; the message says where it differs."""


class Signer(Value):
    """The key that an export was signed with."""

    key: bytes

    @property
    def text(self) -> str:
        return base64.b64encode(self.key).decode()


class Chain:
    """The hashes of the records so far."""

    def __init__(self) -> None:
        self.hashes: list[str] = []

    def add(self, kind: str, record: JsonValue) -> None:
        before = self.hashes[-1] if self.hashes else _START
        # Keys keep their order, as the file has them.
        text = json.dumps(record, separators=(",", ":"))
        data = f"{before}\n{kind}\n{text}".encode()
        self.hashes.append(hashlib.sha256(data).hexdigest())

    def seal(self, secret: bytes) -> JsonObject:
        """The signed end of the chain, as it stands in the file."""
        return {
            "version": VERSION,
            "records": len(self.hashes),
            "head": self.hashes[-1],
            "key": _text(ed25519.public_key(secret)),
            "signature": _text(ed25519.sign(secret, _signed(self.hashes))),
        }


def is_sealed(exported: Mapping[str, JsonValue]) -> bool:
    """Whether an export has a chain and a seal, as those of older versions do not."""
    return "seal" in exported or "chain" in exported


def verify(exported: Mapping[str, JsonValue]) -> Signer:
    """Check all records of a decoded export; returns who signed it.

    Raises ExportDamageError that names the first record which differs.
    """
    seal, written = exported.get("seal"), exported.get("chain")
    if not jsonc.is_object(seal) or not _is_hashes(written):
        raise ExportDamageError("it has no seal: the end of the file is missing or damaged")
    if seal.get("version") != VERSION or set(exported) != {"session", *LISTS, "chain", "seal"}:
        raise ExportDamageError("it has parts that this version of perdure does not know")
    found = Chain()
    for number, (place, kind, record) in enumerate(_records(exported)):
        found.add(kind, record)
        if number >= len(written):
            raise ExportDamageError(f"{place} was added after the export")
        if found.hashes[number] != written[number]:
            raise ExportDamageError(f"{place} is not what was exported, or is not in its place")
    if len(written) > len(found.hashes):
        missing = len(written) - len(found.hashes)
        raise ExportDamageError(f"{missing} records at the end of its events are missing")
    return _verify_seal(seal, found.hashes)


def _verify_seal(seal: Mapping[str, JsonValue], hashes: Sequence[str]) -> Signer:
    if (seal.get("records"), seal.get("head")) != (len(hashes), hashes[-1]):
        raise ExportDamageError("its seal belongs to other records")
    key, signature = _bytes(seal.get("key")), _bytes(seal.get("signature"))
    if not ed25519.verify(key, _signed(hashes), signature):
        raise ExportDamageError("its signature does not fit its records and its key")
    return Signer(key)


def _records(exported: Mapping[str, JsonValue]) -> Iterator[tuple[str, str, JsonValue]]:
    """Where each record stands, its kind, and the record."""
    yield "the Session", "session", exported["session"]
    for name in LISTS:
        records = exported[name]
        if not jsonc.is_list(records):
            raise ExportDamageError(f"`{name}` is not a list")
        for number, record in enumerate(records, start=1):
            yield f"{name.removesuffix('s')} {number} of {len(records)}", name, record


def _signed(hashes: Sequence[str]) -> bytes:
    return f"{_START}\n{len(hashes)}\n{hashes[-1]}".encode()


def _is_hashes(value: JsonValue) -> TypeGuard[list[str]]:
    return (
        jsonc.is_list(value)
        and len(value) > 0
        and all(isinstance(each, str) and len(each) == _HASH_CHARS for each in value)
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(value: JsonValue) -> bytes:
    """The bytes of a base64 text in its one spelling; none for anything else."""
    if not isinstance(value, str):
        return b""
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return data if _text(data) == value else b""
