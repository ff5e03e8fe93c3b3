"""Where a key stands in the text that somebody wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.config_file.problem import Lines, Problem, format_address, with_positions
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address, Position, Positions
from perdure.schema import codec
from perdure.schema.codec import JsonValue

TEXT = """{ // a comment with "keys": 1
  "a": [1, {"b": "x,]}"}, [ ],],
  "\\u0061b": { /* "c": 2 */ "c": null }, "é": true, "after é": {},
  "a": {"again": [[5]]},
}
""".encode()


@pytest.mark.parametrize(
    ("address", "position"),
    [
        (("a", 1, "b"), Position(2, 13)),
        (("a", 2), Position(2, 27)),
        (("ab",), Position(3, 3)),
        (("ab", "c"), Position(3, 29)),
        (("after é",), Position(3, 53)),
        (("a", "again", 0, 0), Position(4, 20)),
        (("nowhere",), None),
        ((), None),
    ],
)
def test_a_key_is_found_past_comments_strings_and_escapes(
    address: Address, position: Position | None
) -> None:
    assert Positions(TEXT).of(address) == position


def test_of_a_key_that_is_given_twice_the_one_that_counts_is_named() -> None:
    assert codec.encode(jsonc.decode(TEXT)["a"]) == b'{"again":[[5]]}'
    assert Positions(TEXT).of(("a",)) == Position(4, 3)


def test_a_byte_order_mark_does_not_move_anything() -> None:
    assert Positions(b'\xef\xbb\xbf{"a": 1}').of(("a",)) == Position(1, 2)


def test_the_nearest_key_that_the_text_has_is_named() -> None:
    lines = Lines(b'{\n"agent": {"x":\n {"maxSteps": 0}},\n"agents": {"y": {}}}')
    assert lines.of(("agents", "x", "steps")) == Position(3, 3)
    assert lines.of(("agents", "x", "request", "body")) == Position(2, 11)
    assert lines.of(("agents", "y")) == Position(4, 12)
    assert lines.of(("model",)) is None
    assert Lines(b"").of(("model",)) is None


def test_very_many_problems_are_a_few_and_a_count() -> None:
    many = [Problem("f", "wrong", at=("permissions", i)) for i in range(100_000)]
    shown = with_positions(many, b'{"permissions": [' + b"1," * 99_999 + b"1]}")
    assert len(shown) == 101
    assert str(shown[3]) == "f:1:24: wrong"
    assert "99900 more" in shown[-1].message


def test_an_address_reads_as_one_would_write_it() -> None:
    assert (
        format_address(("agents", "a/b", "permissions", 2, "effect"))
        == "agents.a/b.permissions[2].effect"
    )


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


@given(_JSON)
def test_every_key_of_any_document_has_a_place(value: JsonValue) -> None:
    positions = Positions(codec.encode(value))
    for address in addresses(value):
        assert positions.of(address) is not None


def addresses(value: JsonValue, at: Address = ()) -> list[Address]:
    if jsonc.is_object(value):
        below = [((*at, key), item) for key, item in value.items()]
    elif jsonc.is_list(value):
        below = [((*at, index), item) for index, item in enumerate(value)]
    else:
        return []
    return [here for here, _ in below] + [a for here, item in below for a in addresses(item, here)]
