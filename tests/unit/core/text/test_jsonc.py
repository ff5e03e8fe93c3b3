"""Configuration text for people: what is forgiven, and where a mistake is said to be."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.text import jsonc
from perdure.core.text.jsonc import JsoncError
from perdure.schema import codec


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ("[1, 2, ]", [1, 2]),
        ('{"a": [1,], "b": {"c": 2,},}', {"a": [1], "b": {"c": 2}}),
        ('// first\n{"a": 1} // last', {"a": 1}),
        ('{/* one */"a"/* two */:/* three */1/* four */}', {"a": 1}),
        ('{"a": 1, // said\n}', {"a": 1}),
        ('{"a": 1 /* , */ , /* } */ }', {"a": 1}),
        ("/* a\n * b **/[true]", [True]),
        ('{"url": "http://host/*x*/,}"}', {"url": "http://host/*x*/,}"}),
        (r'["\"//", "\\", ",]",]', ['"//', "\\", ",]"]),
        ('\ufeff{"a": 1,}', {"a": 1}),
        ('{"ключ": "значение", // да\n}', {"ключ": "значение"}),
        ("[\r\n1,\r\n]", [1]),
        ("//", None),
    ],
)
def test_what_people_write_is_understood(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(JsoncError):
            jsonc.decode(text.encode())
    else:
        assert jsonc.decode(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"a": 1\n "b": 2}', 2, 2),
        ("// one\n/* two\nthree */ {x}", 3, 11),
        ('{\n  "ключ": @\n}', 2, 11),
        ("[1, 2", 1, 6),
        ('{"a": /* never closed', 1, 7),
        ("[,]", 1, 2),
        ("[1,,]", 1, 4),
        ("{,}", 1, 2),
        ('{"a":,}', 1, 6),
        ("", 1, 1),
    ],
)
def test_a_mistake_is_reported_where_it_stands(text: str, line: int, column: int) -> None:
    with pytest.raises(JsoncError) as caught:
        jsonc.decode(text.encode())
    assert (caught.value.line, caught.value.column) == (line, column)


def test_bytes_that_are_not_text_are_reported_where_they_stand() -> None:
    with pytest.raises(JsoncError, match="not UTF-8 text") as caught:
        jsonc.decode(b'{\n"a": "\xff"}')
    assert (caught.value.line, caught.value.column) == (2, 7)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b"[ // deep\n"])
def test_a_bottomless_file_is_refused_and_does_no_harm(opening: bytes) -> None:
    with pytest.raises(JsoncError):
        jsonc.decode(opening * 100_000)


def test_a_file_that_nests_deeper_than_anyone_needs_is_refused() -> None:
    fine = b"[" * jsonc.NESTING_MAX + b"]" * jsonc.NESTING_MAX
    jsonc.decode(fine)
    with pytest.raises(JsoncError, match="levels deep"):
        jsonc.decode(b"[" + b"[0," * 150 + b"0" + b"]" * 151)


@pytest.mark.parametrize(
    "unit", [b"/*", b"*/ /", b'"', b'\\"', b",", b", ", b"//", b"/", b"[,", b"/**", b'"\\']
)
def test_hostile_text_costs_time_in_proportion_to_its_length(unit: bytes) -> None:
    def seconds(count: int) -> float:
        data = b"x" + unit * count
        start = time.process_time()
        with pytest.raises(JsoncError):
            jsonc.decode(data)
        return time.process_time() - start

    seconds(1_000)
    # A quadratic scan of this much would take much longer, even byte by byte in C.
    assert seconds(200_000) < 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(_JSON)
def test_plain_json_means_what_it_always_means(value: object) -> None:
    data = codec.encode(value)
    assert jsonc.blank(data) == data
    assert jsonc.decode(data) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error_with_an_address(data: bytes) -> None:
    try:
        jsonc.decode(data)
    except JsoncError as error:
        address = error.line, error.column
    else:
        address = 1, 1
    assert min(address) >= 1


@given(st.text(alphabet='"\\/*,[]{}: \n1a', max_size=40))
def test_blanking_keeps_every_position(text: str) -> None:
    data = text.encode()
    try:
        blanked = jsonc.blank(data)
    except JsoncError:
        return
    assert len(blanked) == len(data)
    assert blanked.count(b"\n") == data.count(b"\n")
