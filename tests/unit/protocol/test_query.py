"""Query strings as clients spell them."""

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.protocol import query
from perdure.protocol.session.message import ListMessages
from perdure.protocol.session.session import FollowEvents, ListSessions, ReadHistory
from perdure.schema.codec import Payload
from perdure.schema.errors import InvalidRequestError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e1", 10),
        (" 5", 5),
        ("", 0),
        ("  ", 0),
        ("0x10", 16),
        ("0b11", 3),
        (".5", 0.5),
        ("5.", 5),
        ("+7", 7),
        ("-0", 0),
        ("Infinity", math.inf),
        ("1e400", math.inf),
        ("0x" + "f" * 300, math.inf),
        ("9007199254740993", 9007199254740992.0),
    ],
)
def test_numbers_are_read_as_a_script_reads_them(text: str, value: float) -> None:
    assert query.number(text) == value


@pytest.mark.parametrize("text", ["abc", "1_000", "0x", "1e", "inf", "nan", "--1", "٣", "1 2"])
def test_what_a_script_does_not_read_as_a_number_is_none(text: str) -> None:
    assert math.isnan(query.number(text))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (ReadHistory, b"limit=0", 'Expected a value greater than 0, got 0\n  at ["limit"]'),
        (ReadHistory, b"limit=", 'Expected a value greater than 0, got 0\n  at ["limit"]'),
        (
            ReadHistory,
            b"limit=101",
            'Expected a value less than or equal to 100, got 101\n  at ["limit"]',
        ),
        (ReadHistory, b"limit=abc", 'Expected an integer, got NaN\n  at ["limit"]'),
        (ReadHistory, b"limit=1.5", 'Expected an integer, got 1.5\n  at ["limit"]'),
        (ReadHistory, b"after=1e30", 'Expected an integer, got 1e+30\n  at ["after"]'),
        (ReadHistory, b"after=Infinity", 'Expected an integer, got Infinity\n  at ["after"]'),
        (
            ReadHistory,
            b"after=9007199254740992",
            'Expected an integer, got 9007199254740992\n  at ["after"]',
        ),
        (
            FollowEvents,
            b"after=-1",
            'Expected a value greater than or equal to 0, got -1\n  at ["after"]',
        ),
        (
            ReadHistory,
            b"limit=2&limit=3",
            'Expected string | undefined, got ["2","3"]\n  at ["limit"]',
        ),
        (
            ListMessages,
            b"limit=0",
            'Expected a value greater than or equal to 1, got 0\n  at ["limit"]',
        ),
        (ListMessages, b"order=up", 'Expected "asc" | "desc", got "up"\n  at ["order"]'),
        (
            ListSessions,
            b"workspace=zz",
            'Expected a string starting with "wrk_", got "zz"\n  at ["workspace"]',
        ),
    ],
)
def test_a_bad_query_says_what_was_expected(kind: type[Payload], text: bytes, said: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        query.decode(kind, query.parse(text))
    assert (refused.value.message, refused.value.kind) == (said, "Query")


def test_faults_of_different_kinds_are_reported_together() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        query.decode(ReadHistory, query.parse(b"limit=x&after=-1"))
    assert refused.value.message.count("\n  at ") == 2


def test_names_nobody_knows_are_ignored() -> None:
    assert query.decode(FollowEvents, query.parse(b"after=&nope=1&nope=2")) == FollowEvents(after=0)


def test_escapes_plus_signs_and_bad_bytes_are_decoded() -> None:
    fields = query.parse(b"a+b=%2Ftmp%2Fx+y&location%5Bdirectory%5D=%ff&&=&c=%zz")
    assert fields == {
        "a b": ["/tmp/x y"],
        "location[directory]": ["\ufffd"],
        "": [""],
        "c": ["%zz"],
    }


@given(st.binary(max_size=200))
def test_any_bytes_can_be_asked(text: bytes) -> None:
    """Decoded or refused in the contract's words; never a defect."""
    with contextlib.suppress(InvalidRequestError):
        query.decode(ListSessions, query.parse(text))
