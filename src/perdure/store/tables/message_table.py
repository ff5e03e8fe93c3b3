"""The `session_message` projection: one row for each message, with its public JSON."""

from collections.abc import Sequence
from typing import Final, cast

from msgspec import UNSET

from perdure.ports import Row, SqlValue, Transaction
from perdure.schema import codec
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.message import SessionMessage, ShellMessage
from perdure.schema.value import Value
from perdure.store.tables import row_checks

_TABLE: Final = "session_message"
_ANY_MESSAGE: Final = cast("type[SessionMessage]", SessionMessage)
_INSERT: Final = """
    INSERT INTO session_message (id, session_id, seq, type, time_created, data)
    VALUES (:id, :session_id, :seq, :type, :time_created, :data)
"""


class MessageRow(Value):
    session_id: SessionID
    id: MessageID
    seq: Seq
    type: str
    stored: bytes
    """The data column, not checked."""

    @property
    def data(self) -> bytes:
        """The public JSON. Raises DamagedRowError when it is not valid."""
        return row_checks.require_json(self.stored, self.session_id, table=_TABLE, seq=self.seq)

    def message(self) -> SessionMessage:
        """Decode the message. Raises DamagedRowError."""
        return row_checks.decode_row(
            _ANY_MESSAGE, self.stored, self.session_id, table=_TABLE, seq=self.seq
        )


def type_of(message: SessionMessage) -> str:
    return str(message.__struct_config__.tag)


async def insert(tx: Transaction, session_id: SessionID, seq: Seq, message: SessionMessage) -> None:
    await tx.execute(
        _INSERT,
        {
            "id": message.id,
            "session_id": session_id,
            "seq": seq,
            "type": type_of(message),
            "time_created": message.time.created,
            "data": codec.encode(message),
        },
    )


async def update(tx: Transaction, message: SessionMessage) -> None:
    await tx.execute(
        "UPDATE session_message SET data = :data WHERE id = :id",
        {"id": message.id, "data": codec.encode(message)},
    )


async def get(tx: Transaction, session_id: SessionID, message_id: MessageID) -> MessageRow | None:
    """The row of a message, if that Session owns it."""
    rows = await tx.fetch(
        "SELECT id, seq, type, data FROM session_message"
        " WHERE id = :id AND session_id = :session_id",
        {"id": message_id, "session_id": session_id},
    )
    return _row(session_id, rows[0]) if rows else None


async def get_at(tx: Transaction, session_id: SessionID, seq: int) -> MessageRow | None:
    rows = await tx.fetch(
        "SELECT id, seq, type, data FROM session_message"
        " WHERE session_id = :session_id AND seq = :seq",
        {"session_id": session_id, "seq": seq},
    )
    return _row(session_id, rows[0]) if rows else None


async def exists(tx: Transaction, message_id: MessageID) -> bool:
    """Whether any Session owns it."""
    rows = await tx.fetch("SELECT 1 FROM session_message WHERE id = :id", {"id": message_id})
    return bool(rows)


async def latest_of_type(
    tx: Transaction, session_id: SessionID, type: str, *, before: Seq
) -> MessageRow | None:
    rows = await tx.fetch(
        "SELECT id, seq, type, data FROM session_message"
        " WHERE session_id = :session_id AND seq < :before AND type = :type"
        " ORDER BY seq DESC LIMIT 1",
        {"session_id": session_id, "before": before, "type": type},
    )
    return _row(session_id, rows[0]) if rows else None


async def latest_conversation_message(tx: Transaction, session_id: SessionID) -> MessageRow | None:
    """The newest user, assistant or synthetic message."""
    rows = await tx.fetch(
        "SELECT id, seq, type, data FROM session_message"
        " WHERE session_id = :session_id AND type IN ('user', 'assistant', 'synthetic')"
        " ORDER BY seq DESC LIMIT 1",
        {"session_id": session_id},
    )
    return _row(session_id, rows[0]) if rows else None


async def has_open_shell(tx: Transaction, session_id: SessionID) -> bool:
    """Whether the newest command of the user has not ended."""
    rows = await tx.fetch(
        "SELECT id, seq, type, data FROM session_message"
        " WHERE session_id = :session_id AND type = 'shell' ORDER BY seq DESC LIMIT 1",
        {"session_id": session_id},
    )
    message = _row(session_id, rows[0]).message() if rows else None
    return isinstance(message, ShellMessage) and message.time.completed is UNSET


async def newest_prompts(tx: Transaction, session_id: SessionID, *, limit: int) -> list[MessageRow]:
    """The newest user messages, ascending."""
    rows = await tx.fetch(
        "SELECT id, seq, type, data FROM session_message"
        " WHERE session_id = :session_id AND type = 'user' ORDER BY seq DESC LIMIT :limit",
        {"session_id": session_id, "limit": limit},
    )
    return [_row(session_id, row) for row in reversed(rows)]


async def count_steps(tx: Transaction, session_id: SessionID, *, after: int = -1) -> int:
    """Count the steps after a sequence, failed ones included."""
    rows = await tx.fetch(
        "SELECT count(*) FROM session_message"
        " WHERE session_id = :session_id AND seq > :after AND type = 'assistant'",
        {"session_id": session_id, "after": after},
    )
    counted = rows[0][0]
    assert isinstance(counted, int)
    return counted


async def latest_compaction(tx: Transaction, session_id: SessionID) -> Seq | None:
    rows = await tx.fetch(
        "SELECT seq FROM session_message WHERE session_id = :session_id AND type = 'compaction'"
        " ORDER BY seq DESC LIMIT 1",
        {"session_id": session_id},
    )
    return Seq(_integer(rows[0])) if rows else None


async def page(
    tx: Transaction,
    session_id: SessionID,
    *,
    newest_first: bool,
    limit: int,
    anchor: Seq | None,
) -> list[MessageRow]:
    """Rows by seq, starting after `anchor` in that direction."""
    rows = await tx.fetch(
        f"SELECT id, seq, type, data {_from_page(newest_first=newest_first, anchor=anchor)}",
        {"session_id": session_id, "limit": limit} | ({} if anchor is None else {"anchor": anchor}),
    )
    return [_row(session_id, row) for row in rows]


async def page_sizes(
    tx: Transaction,
    session_id: SessionID,
    *,
    newest_first: bool,
    limit: int,
    anchor: Seq | None,
) -> list[SqlValue]:
    """The bytes of the rows that `page` would read, without reading them."""
    rows = await tx.fetch(
        f"SELECT length(data) {_from_page(newest_first=newest_first, anchor=anchor)}",
        {"session_id": session_id, "limit": limit} | ({} if anchor is None else {"anchor": anchor}),
    )
    return [size for (size,) in rows]


async def list_after(tx: Transaction, session_id: SessionID, after: Seq) -> list[MessageRow]:
    """Every row with a greater seq, ascending."""
    rows = await tx.fetch(
        "SELECT id, seq, type, data FROM session_message"
        " WHERE session_id = :session_id AND seq > :after ORDER BY seq",
        {"session_id": session_id, "after": after},
    )
    return [_row(session_id, row) for row in rows]


async def list_following(
    tx: Transaction, session_id: SessionID, known: Seq
) -> list[MessageRow] | None:
    """Every row after the one at `known`, ascending; None if that one is gone."""
    rows = await tx.fetch(
        "SELECT id, seq, type, CASE WHEN seq > :known THEN data ELSE x'' END FROM session_message"
        " WHERE session_id = :session_id AND seq >= :known ORDER BY seq",
        {"session_id": session_id, "known": known},
    )
    if not rows or rows[0][1] != known:
        return None
    return [_row(session_id, row) for row in rows[1:]]


async def delete_after(tx: Transaction, session_id: SessionID, seq: Seq) -> None:
    await tx.execute(
        "DELETE FROM session_message WHERE session_id = :session_id AND seq > :seq",
        {"session_id": session_id, "seq": seq},
    )


def _from_page(*, newest_first: bool, anchor: Seq | None) -> str:
    sign, direction = ("<", "DESC") if newest_first else (">", "ASC")
    condition = "" if anchor is None else f"AND seq {sign} :anchor"
    return (
        "FROM session_message"
        f" WHERE session_id = :session_id {condition} ORDER BY seq {direction} LIMIT :limit"
    )


def _row(session_id: SessionID, row: Row) -> MessageRow:
    message_id, seq, tag, stored = row
    assert isinstance(seq, int)
    data = row_checks.require_bytes(stored, session_id, table=_TABLE, seq=seq)
    return MessageRow(session_id, MessageID(str(message_id)), Seq(seq), str(tag), data)


def _integer(row: Sequence[object]) -> int:
    assert isinstance(row[0], int)
    return row[0]
