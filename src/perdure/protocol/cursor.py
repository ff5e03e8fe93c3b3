"""Opaque, signed cursors for pages.

A cursor contains everything the next page needs: the query, its order, the page size, the anchor
row and the side of it. It is signed by an HMAC with the caller's key. Text that was altered, cut,
or made for another kind of list or another Session gives the same error.
"""

import base64
import binascii
import hmac
from typing import Final, TypeVar

import msgspec

from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.errors import InvalidCursorError
from perdure.schema.ids import SessionID
from perdure.schema.query import Direction, Order

SEAL_BYTES: Final = 16


class SessionCursor(Record, frozen=True, tag_field="of", tag="sessions"):
    order: Order
    limit: int
    direction: Direction
    time: int
    id: SessionID
    place: int = 0
    directory: str | None = None
    project: str | None = None
    workspace: str | None = None
    search: str | None = None
    subpath: str | None = None
    archived: bool | None = None


class MessageCursor(Record, frozen=True, tag_field="of", tag="messages"):
    session_id: SessionID
    order: Order
    limit: int
    direction: Direction
    seq: int


CursorT = TypeVar("CursorT", SessionCursor, MessageCursor)


def seal(cursor: SessionCursor | MessageCursor, *, key: bytes) -> str:
    content = codec.encode(cursor)
    return base64.urlsafe_b64encode(_seal(content, key) + content).rstrip(b"=").decode()


def open_sessions(text: str, *, key: bytes) -> SessionCursor:
    return _open(SessionCursor, text, key)


def open_messages(text: str, *, key: bytes, session_id: SessionID) -> MessageCursor:
    cursor = _open(MessageCursor, text, key)
    if cursor.session_id != session_id:
        raise InvalidCursorError
    return cursor


def _open(kind: type[CursorT], text: str, key: bytes) -> CursorT:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidCursorError from error
    content = raw[SEAL_BYTES:]
    if not hmac.compare_digest(raw[:SEAL_BYTES], _seal(content, key)):
        raise InvalidCursorError
    try:
        return codec.decode(kind, content)
    except msgspec.DecodeError as error:
        raise InvalidCursorError from error


def _seal(content: bytes, key: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")[:SEAL_BYTES]
