"""The text of an exported Session: one JSON value, with a record on each line.

An export is written as its records are read, and a file is compared with what the same records
would be written as.
"""

import json
from collections.abc import Iterator, Mapping

from perdure.core.export import chain
from perdure.core.export.chain import Chain, ExportDamageError
from perdure.schema.codec import JsonObject, JsonValue


class ExportWriter:
    """Returns the parts of an export in order: `begin`, each list with its records, `end`."""

    def __init__(self) -> None:
        self._chain = Chain()
        self._separator = ""

    def begin(self, session: JsonObject) -> str:
        self._chain.add("session", session)
        return f'{{"session":{as_json(session)}'

    def begin_list(self, name: str) -> str:
        self._separator = "\n"
        return f',\n"{name}":['

    def add(self, name: str, record: JsonValue) -> str:
        self._chain.add(name, record)
        text = f"{self._separator}{as_json(record)}"
        self._separator = ",\n"
        return text

    def end_list(self) -> str:
        return "]" if self._separator == ",\n" else "\n]"

    def seal(self, secret: bytes) -> JsonObject:
        return self._chain.seal(secret)

    def end(self, seal: JsonObject) -> str:
        hashes = ",\n".join(map(as_json, self._chain.hashes))
        return f',\n"chain":[\n{hashes}],\n"seal":{as_json(seal)}}}\n'


def check_bytes(exported: Mapping[str, JsonValue], data: bytes) -> None:
    """Check that a file whose records were verified is, byte for byte, what export writes.

    Raises ExportDamageError that names the first byte which differs.
    """
    position = 0
    for part in _write(exported):
        expected = part.encode("ascii")
        found = data[position : position + len(expected)]
        if found != expected:
            position += _first_difference(found, expected)
            raise ExportDamageError(
                f"byte {position + 1:,} was changed; its records say the same as before"
            )
        position += len(expected)
    if position != len(data):
        raise ExportDamageError(f"something was added after byte {position:,}")


def as_json(value: JsonValue) -> str:
    """Compact JSON in ASCII, without characters that a terminal obeys."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def _write(exported: Mapping[str, JsonValue]) -> Iterator[str]:
    writer = ExportWriter()
    yield writer.begin(exported["session"])
    for name in chain.LISTS:
        yield writer.begin_list(name)
        for record in exported[name]:
            yield writer.add(name, record)
        yield writer.end_list()
    yield writer.end(exported["seal"])


def _first_difference(one: bytes, two: bytes) -> int:
    shorter = min(len(one), len(two))
    return next((at for at in range(shorter) if one[at] != two[at]), shorter)
