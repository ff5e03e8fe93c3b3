"""Reads a file that `perdure export` printed, and checks that it is whole."""

import sys
from typing import Final, cast

import msgspec

from perdure.cli import terminal
from perdure.cli.problem import Problem
from perdure.core.export import chain, writer
from perdure.core.export.chain import ExportDamageError, Signer
from perdure.schema import codec
from perdure.schema.codec import JsonObject

_FILE_BYTES_MAX: Final = 1_000_000_000


def load(path: str) -> tuple[JsonObject, bytes]:
    """The export in a file, or on stdin for `-`, decoded and as it stands there."""
    shown = terminal.one_line(path)
    try:
        if path == "-":
            data = sys.stdin.buffer.read(_FILE_BYTES_MAX + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise Problem(f"{shown}: {error.strerror or error}") from error
    if len(data) > _FILE_BYTES_MAX:
        raise Problem(f"{shown} is larger than {_FILE_BYTES_MAX:,} bytes")
    try:
        exported = codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(f"{shown} is not JSON: {error}") from error
    if not isinstance(exported, dict) or not {"session", "events"} <= exported.keys():
        raise Problem(f"{shown} is not an export of a Session; `perdure export` prints one")
    return cast("JsonObject", exported), data


def verify(path: str, exported: JsonObject, data: bytes | None = None) -> Signer:
    """Who signed the export; a Problem if a record of it was changed since.

    With the bytes of the file, not even its white space may differ.
    """
    shown = terminal.one_line(path)
    if not chain.is_sealed(exported):
        raise Problem(
            f"{shown} has no seal: it was exported by an older version, or its end was removed"
        )
    try:
        signer = chain.verify(exported)
        if data is not None:
            writer.check_bytes(exported, data)
    except (ExportDamageError, UnicodeEncodeError, KeyError) as error:
        raise Problem(f"{shown} was changed after its export: {error}") from error
    return signer
