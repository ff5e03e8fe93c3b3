"""How a client sends and reads: by pages with every cursor both ways, as a stream, to the end."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final, TypeVar, cast

from perdure.net import sse
from perdure.runtime.app.runtime import Runtime
from perdure.schema import codec
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.errors import NothingToDecideError, SessionNotFoundError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.query import (
    Direction,
    MessageAnchor,
    Order,
    SessionAnchor,
    SessionQuery,
    SessionRow,
)
from perdure.schema.session.prompt import PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from tests.harness.checkers.ledger import LoggedEvent
from tests.state_machine.data_directory import PROVIDER
from tests.state_machine.expectations import Sent

__all__ = [
    "LoggedEvent",
    "answered",
    "at_rest",
    "created_again",
    "history",
    "is_between",
    "message_pages",
    "send",
    "session_pages",
    "streamed",
]

T = TypeVar("T")

FRAME_BYTES_MAX: Final = 1 << 24
LOOK_SECONDS: Final = 0.05
Place = tuple[Seq, bytes]


async def send(runtime: Runtime, sent: Sent, *, resume: bool) -> AdmittedPrompt:
    return await runtime.sessions.prompt(
        sent.session_id,
        PromptInput(text=sent.text),
        id=sent.id,
        delivery=sent.delivery,
        resume=resume,
    )


async def session_pages(runtime: Runtime, *, limit: int, order: Order) -> list[SessionID]:
    """Every Session, page by page forwards; each page is found again on the way back."""
    query = SessionQuery(order=order)
    forwards: list[tuple[SessionID, ...]] = []
    page = await runtime.sessions.list(query, limit=limit, anchor=None)
    anchors: list[SessionAnchor] = []
    while page.rows:
        ids = tuple(row.id for row in page.rows)
        assert ids not in forwards, "a page came twice"
        forwards.append(ids)
        anchors.append(session_anchor(page.rows[0], "previous"))
        if not page.has_next:
            break
        anchor = session_anchor(page.rows[-1], "next")
        page = await runtime.sessions.list(query, limit=limit, anchor=anchor)
    for earlier, anchor in zip(forwards, anchors[1:], strict=False):
        back = await runtime.sessions.list(query, limit=limit, anchor=anchor)
        assert tuple(row.id for row in back.rows) == earlier
    return [session_id for ids in forwards for session_id in ids]


def session_anchor(row: SessionRow, direction: Direction) -> SessionAnchor:
    return SessionAnchor(time=row.time_created, place=row.place, id=row.id, direction=direction)


async def message_pages(
    runtime: Runtime, session_id: SessionID, *, limit: int, order: Order
) -> list[MessageID]:
    """Every message, page by page forwards; each page is found again on the way back."""
    pages: list[tuple[tuple[MessageID, ...], int]] = []
    anchor: MessageAnchor | None = None
    while True:
        page = await runtime.sessions.messages(session_id, limit=limit, order=order, anchor=anchor)
        if page.rows:
            pages.append((tuple(row.id for row in page.rows), page.rows[0].seq))
            assert pages[-1] not in pages[:-1], "a page came twice"
        if not page.has_next or not page.rows:
            break
        anchor = MessageAnchor(seq=page.rows[-1].seq, direction="next")
    for (earlier, _), (_, first) in itertools.pairwise(pages):
        back = await runtime.sessions.messages(
            session_id,
            limit=limit,
            order=order,
            anchor=MessageAnchor(seq=first, direction="previous"),
        )
        assert tuple(row.id for row in back.rows) == earlier
    return [message_id for ids, _ in pages for message_id in ids]


async def history(
    runtime: Runtime, session_id: SessionID, *, after: int, limit: int
) -> list[Place]:
    found: list[Place] = []
    more = True
    while more:
        at = found[-1][0] if found else after
        page, more = await runtime.sessions.history(session_id, after=at, limit=limit)
        found += [_place(wire) for wire in page]
        assert page or not more
    return found


async def streamed(
    runtime: Runtime, session_id: SessionID, *, after: int, until: Seq
) -> list[Place]:
    """What a reader gets who connects after a sequence, until it has seen another one."""
    found: list[Place] = []
    if max(after, 0) >= until:
        return found
    frames = sse.Reader(bytes_max=FRAME_BYTES_MAX)
    # Its cleanup ends the subscription; a bare iterator would leave that to the collector.
    chunks = runtime.sessions.events(session_id, after=after)
    assert isinstance(chunks, AsyncGenerator)
    async with aclosing(cast("AsyncGenerator[bytes]", chunks)):
        async for chunk in chunks:
            found += [_place(frame.data) for frame in frames.feed(chunk)]
            if found and found[-1][0] >= until:
                break
    return found


async def answered(runtime: Runtime, session_id: SessionID, *, allow: bool) -> bool:
    """Answer whatever the Session waits for; whether it waited."""
    asked = await runtime.permissions.list(session_id)
    word = PermissionWord(reply="once" if allow else "reject")
    for request in asked:
        await runtime.permissions.reply(session_id, request.id, word)
    questions = await runtime.questions.list(session_id)
    for question in questions:
        if allow:
            await runtime.questions.reply(session_id, question.id, (("this",),))
        else:
            await runtime.questions.reject(session_id, question.id)
    return bool(asked or questions)


async def at_rest(runtime: Runtime, sessions: tuple[SessionID, ...]) -> set[SessionID]:
    """Allow everything, until nothing runs and nothing waits for a word of ours.

    Returns the Sessions whose runs were continued by such a word.
    """
    continued: set[SessionID] = set()
    while True:
        continued |= (again := await _sent_again(runtime, sessions))
        if not (again or runtime.sessions.active()):
            return continued
        for session_id in sessions:
            await answered(runtime, session_id, allow=True)
        await asyncio.sleep(LOOK_SECONDS)


async def _sent_again(runtime: Runtime, sessions: tuple[SessionID, ...]) -> set[SessionID]:
    """What too many processes died in goes on when a person says so."""
    found: set[SessionID] = set()
    for session_id in sessions:
        with suppress(SessionNotFoundError, NothingToDecideError):
            if (await runtime.recovery.load_recovery(session_id)).waiting:
                await runtime.recovery.decide(session_id, "retry")
                found.add(session_id)
    return found


def is_between(least: list[T], found: list[T], most: list[T]) -> bool:
    """Whether what was found is all there was, and perhaps some of what came meanwhile."""
    return found[: len(least)] == least and most[: len(found)] == found


async def created_again(
    runtime: Runtime, session_id: SessionID, agent: str
) -> tuple[SessionInfo, SessionInfo]:
    """The Session as it is, and what making it again with other arguments gives."""
    stored = codec.decode(SessionInfo, await runtime.sessions.get(session_id))
    model = ModelRef(id="another", provider_id=PROVIDER)
    again = await runtime.sessions.create(id=session_id, agent=agent, model=model)
    return stored, again


def _place(wire: bytes) -> Place:
    """The sequence of a public event, and its data as the log has it."""
    head, _, data = wire.partition(b'"data":')
    seq = codec.decode_any(wire)["durable"]["seq"]
    assert head
    return Seq(seq), data[:-1]
