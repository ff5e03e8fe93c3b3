"""A sealed export: any damage of its bytes is found, and the first damaged record is named."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec
import pytest

from perdure.core.export import chain, writer
from perdure.core.export.chain import ExportDamageError
from perdure.core.export.writer import ExportWriter
from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

SECRET = bytes(range(32))
DAMAGES = 10_000


def write(session: JsonObject, messages: list[JsonValue], events: list[JsonValue]) -> bytes:
    made = ExportWriter()
    parts = [made.begin(session)]
    for name, records in (("messages", messages), ("events", events)):
        parts.append(made.begin_list(name))
        parts.extend(made.add(name, record) for record in records)
        parts.append(made.end_list())
    parts.append(made.end(made.seal(SECRET)))
    return "".join(parts).encode()


def sample() -> bytes:
    events = [
        {
            "id": f"evt_{number}",
            "type": "text",
            "seq": number,
            "cost": number / 7,
            "text": "é\x7f\n",
        }
        for number in range(1, 13)
    ]
    messages = [{"id": f"msg_{number}", "parts": [1, None, True]} for number in range(3)]
    return write({"id": "ses_1", "title": "A title"}, list(messages), list(events))


def check(data: bytes) -> None:
    """What `perdure verify` does with a file; any refusal is an ExportDamageError."""
    try:
        exported = codec.decode_any(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ExportDamageError(str(error)) from error
    if not jsonc.is_object(exported) or not {"session", "events"} <= exported.keys():
        raise ExportDamageError("no export")
    try:
        chain.verify(exported)
        writer.check_bytes(exported, data)
    except (KeyError, UnicodeEncodeError) as error:
        raise ExportDamageError(str(error)) from error


def damage(data: bytes, chance: Random) -> bytes:
    """The bytes with one thing changed: a bit, a byte, a part or a line."""
    at = chance.randrange(len(data))
    lines = data.splitlines(keepends=True)
    one, two = chance.sample(range(len(lines)), 2)
    match chance.randrange(8):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        case 2:
            return data[:at] + data[at + chance.randint(1, 40) :]
        case 3:
            return data[:at] + chance.randbytes(chance.randint(1, 4)) + data[at:]
        case 4:
            return data[:at] + chance.choice([b" ", b"\n", b"0", b",", b"null"]) + data[at:]
        case 5:
            return b"".join(lines[:one] + lines[one + 1 :])
        case 6:
            return b"".join([*lines[:one], lines[two], *lines[one:]])
        case _:
            lines[one], lines[two] = lines[two], lines[one]
            return b"".join(lines)


@pytest.mark.timeout(180)
def test_every_one_of_many_random_damages_is_found() -> None:
    data, chance = sample(), Random(29)
    check(data)
    missed = list[bytes]()
    for _ in range(DAMAGES):
        changed = damage(data, chance)
        if changed == data:
            continue
        try:
            check(changed)
        except ExportDamageError:
            continue
        missed.append(changed)
    assert missed == []


Change = Callable[[JsonObject], object]
CHANGES: Final[Sequence[tuple[Change, str]]] = (
    (lambda e: e["session"].update(title="x"), "the Session is not what was exported"),
    (lambda e: e["messages"].pop(1), "message 2 of 2 is not what was exported"),
    (lambda e: e["events"][4].update(cost=0), "event 5 of 12 is not what was exported"),
    (lambda e: e["events"].pop(), "1 records at the end of its events are missing"),
    (lambda e: e["events"].append({}), "event 13 of 13 was added after the export"),
    (lambda e: e["events"].insert(0, e["events"].pop()), "event 1 of 12 is not what"),
    (lambda e: e.pop("seal"), "it has no seal"),
    (lambda e: e.update(chain=[]), "it has no seal"),
    (lambda e: e.update(more=1), "parts that this version of perdure does not know"),
    (lambda e: e["seal"].update(version=2), "parts that this version"),
    (lambda e: e["seal"].update(head="0" * 64), "its seal belongs to other records"),
    (lambda e: e["seal"].update(records=3), "its seal belongs to other records"),
    (lambda e: e["seal"].update(key="AAAA"), "its signature does not fit"),
    (lambda e: e["seal"].update(signature=7), "its signature does not fit"),
    (lambda e: e.update(events={}), "`events` is not a list"),
)


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_the_first_damaged_record_is_named(change: Change, message: str) -> None:
    exported = json.loads(sample())
    change(exported)
    with pytest.raises(ExportDamageError, match=message):
        chain.verify(exported)


def test_a_new_chain_over_changed_records_needs_the_secret_key() -> None:
    exported = json.loads(sample())
    forged = json.loads(write({"id": "ses_1", "title": "Forged"}, [], []))
    forged["seal"]["signature"] = exported["seal"]["signature"]
    with pytest.raises(ExportDamageError, match="its signature does not fit"):
        chain.verify(forged)
    assert chain.verify(exported).key == chain.verify(json.loads(sample())).key


def test_an_export_of_nothing_is_verified_too() -> None:
    check(write({"id": "ses_1"}, [], []))


@pytest.mark.parametrize("value", [0.1, 1e300, 5e-324, 2**63, -1, "\ud7ff\U0010ffff", [], {}])
def test_values_of_every_kind_are_written_as_they_are_read(value: JsonValue) -> None:
    check(write({"id": "ses_1", "value": value}, [value], [value]))
