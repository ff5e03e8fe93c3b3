"""Cursors are ours alone to write."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.protocol import cursor
from perdure.protocol.cursor import MessageCursor, SessionCursor
from perdure.schema import codec
from perdure.schema.errors import InvalidCursorError
from perdure.schema.ids import SessionID
from tests.requirements import requirement

KEY = b"0" * 32
ONE = SessionID("ses_one")
SESSIONS = SessionCursor(
    order="desc", limit=20, direction="next", time=5, id=ONE, search="ünï", directory="/a"
)
MESSAGES = MessageCursor(session_id=ONE, order="asc", limit=7, direction="previous", seq=9)


@requirement("S136")
def test_a_session_cursor_carries_the_whole_query() -> None:
    assert cursor.open_sessions(cursor.seal(SESSIONS, key=KEY), key=KEY) == SESSIONS


@requirement("S137")
def test_a_message_cursor_carries_order_size_direction_and_anchor() -> None:
    text = cursor.seal(MESSAGES, key=KEY)
    assert cursor.open_messages(text, key=KEY, session_id=ONE) == MESSAGES


@requirement("S137")
def test_a_cursor_of_another_session_is_refused() -> None:
    with pytest.raises(InvalidCursorError):
        cursor.open_messages(cursor.seal(MESSAGES, key=KEY), key=KEY, session_id=SessionID("ses_x"))


def test_a_cursor_of_another_server_is_refused() -> None:
    with pytest.raises(InvalidCursorError):
        cursor.open_sessions(cursor.seal(SESSIONS, key=b"1" * 32), key=KEY)


def test_a_cursor_of_the_other_list_is_refused() -> None:
    with pytest.raises(InvalidCursorError):
        cursor.open_sessions(cursor.seal(MESSAGES, key=KEY), key=KEY)
    with pytest.raises(InvalidCursorError):
        cursor.open_messages(cursor.seal(SESSIONS, key=KEY), key=KEY, session_id=ONE)


def test_a_cursor_written_by_hand_is_refused() -> None:
    plain = base64.urlsafe_b64encode(b"\x00" * 16 + codec.encode(SESSIONS)).decode().rstrip("=")
    with pytest.raises(InvalidCursorError):
        cursor.open_sessions(plain, key=KEY)


@pytest.mark.parametrize("position", range(0, 120, 7))
def test_every_altered_character_is_noticed(position: int) -> None:
    text = cursor.seal(SESSIONS, key=KEY)
    other = "A" if text[position] != "A" else "B"
    with pytest.raises(InvalidCursorError):
        cursor.open_sessions(text[:position] + other + text[position + 1 :], key=KEY)


@given(st.text(max_size=300))
def test_any_text_is_refused_as_one_and_the_same_error(text: str) -> None:
    with pytest.raises(InvalidCursorError) as refused:
        cursor.open_sessions(text, key=KEY)
    assert refused.value.message == "Invalid cursor"
