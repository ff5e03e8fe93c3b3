"""The values of a JSON text are counted exactly, without decoding it and in linear time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.core.text import jsonc
from perdure.schema import codec, json_values
from perdure.schema.codec import JsonValue
from perdure.schema.json_values import JSON_VALUES_MAX

SECONDS_MAX = 1.0
"""Processor time: ten times what the slowest row needs."""

texts = st.text(alphabet='a,[{"\\\n')
values = st.recursive(
    st.none() | st.integers(0, 9) | texts,
    lambda inner: st.lists(inner, min_size=1) | st.dictionaries(texts, inner, min_size=1),
)


@settings(max_examples=40)
@given(values, st.sampled_from([0, 1, JSON_VALUES_MAX]))
def test_the_count_is_that_of_the_decoded_value(value: JsonValue, padding: int) -> None:
    """Values inside strings do not count; the outermost list and its text are two more."""
    missing = JSON_VALUES_MAX - count(value) - padding
    filled = [value, *[0] * (missing - 1)] if missing > 0 else [value, *[0] * JSON_VALUES_MAX]
    data = codec.encode(filled)
    assert json_values.is_too_many(data) is (count(filled) - 1 > JSON_VALUES_MAX)


@pytest.mark.parametrize(
    ("data", "too_many"),
    [
        (b"[" + b"1," * JSON_VALUES_MAX + b"1]", True),
        (b"[" + b"1," * (JSON_VALUES_MAX - 1) + b"1]", False),
        (b"{" + b'"a":1,' * 1_500_000 + b'"a":1}', True),
        (b'{"a":"' + b"x,[{" * 2_000_000 + b'"}', False),
        (b'{"a":"' + b',\\"' * 3_000_000 + b'"}', False),
        (b'{"a":"' + b",\\\\" * 3_000_000 + b'"}', False),
        (b"[" * 10_000_000, True),
        (b'",' * 5_000_000, True),
        (b'"' * 10_000_000, False),
        (b"\\" * 10_000_000, False),
        (b'"' + b"\\" * 10_000_001, False),
    ],
    ids=lambda given: f"{given[:12]!r}" if isinstance(given, bytes) else None,
)
def test_hostile_texts_are_counted_quickly(data: bytes, *, too_many: bool) -> None:
    began = time.thread_time()
    assert json_values.is_too_many(data) is too_many
    assert time.thread_time() - began < SECONDS_MAX


def count(value: JsonValue) -> int:
    if jsonc.is_list(value):
        return 1 + sum(map(count, value))
    return 1 + (sum(map(count, value.values())) if jsonc.is_object(value) else 0)
