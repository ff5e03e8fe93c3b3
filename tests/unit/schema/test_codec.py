"""Wire names, absent fields, and what decoding refuses."""

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from perdure.schema import codec
from perdure.schema.codec import JSON_DEPTH_MAX, JsonObject, Record
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import SystemMessage
from tests.requirements import requirement


class Sample(Record):
    assistant_message_id: str
    id: str
    uri: str | UnsetType = UNSET
    tags: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("field", "wire"),
    [
        ("id", "id"),
        ("session_id", "sessionID"),
        ("assistant_message_id", "assistantMessageID"),
        ("provider_metadata", "providerMetadata"),
        ("id_source", "idSource"),
        ("is_retryable", "isRetryable"),
        ("output_paths", "outputPaths"),
    ],
)
def test_a_field_has_one_name_on_the_wire(field: str, wire: str) -> None:
    assert codec.wire_name(field) == wire


def test_an_absent_field_is_left_out_and_comes_back_absent() -> None:
    value = Sample("a", "b")
    assert codec.encode(value) == b'{"assistantMessageID":"a","id":"b"}'
    assert codec.decode(Sample, codec.encode(value)) == value
    assert codec.decode(Sample, codec.encode(value)).uri is UNSET


@pytest.mark.parametrize(
    "text",
    [
        '{"assistantMessageID":"a"}',
        '{"assistantMessageID":1,"id":"b"}',
        '{"assistantMessageID":"a","id":"b","uri":null}',
        '{"assistantMessageID":"a","id":"b"',
        "",
        "[]",
    ],
)
def test_what_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        codec.decode(Sample, text)


def test_a_field_from_a_newer_writer_is_ignored() -> None:
    assert codec.decode(Sample, '{"assistantMessageID":"a","id":"b","later":{}}').id == "b"


@requirement("S145")
def test_a_record_is_a_plain_value_that_cannot_be_changed() -> None:
    one, other = ModelRef(id="m", provider_id="p"), ModelRef(id="m", provider_id="p")
    assert one == other
    assert hash(one) == hash(other)
    for name in one.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(one, name, "other")


def test_a_tagged_record_says_its_kind_first() -> None:
    wire = codec.encode(codec.convert(SystemMessage, _system("msg_1")))
    assert wire.startswith(b'{"type":"system","id":"msg_1"')


def _system(id: str) -> JsonObject:
    return {"type": "system", "id": id, "time": {"created": 1}, "text": "t"}


@pytest.mark.parametrize(
    ("text", "deep"),
    [
        ("[" * JSON_DEPTH_MAX + "]" * JSON_DEPTH_MAX, False),
        ("[" * (JSON_DEPTH_MAX + 1) + "]" * (JSON_DEPTH_MAX + 1), True),
        ('{"a":' * 400 + "1" + "}" * 400, True),
        ("[" + "{}," * 5_000 + "{}]", False),
        ('{"a":"' + "[" * 900 + '"}', False),
        ('{"a":"\\"' + "[" * 900 + '"}', False),
        ('{"a":"\\\\","b":' + "[" * 900 + "]" * 900 + "}", True),
        ('{"a":"\\\\\\"' + "[" * 900 + '"}', False),
    ],
)
def test_json_of_unknown_shape_has_a_bounded_depth(text: str, deep: bool) -> None:
    for given in (text, text.encode()):
        if deep:
            with pytest.raises(msgspec.DecodeError, match="nested more than"):
                codec.decode_any(given)
        else:
            assert codec.decode_any(given) is not None
