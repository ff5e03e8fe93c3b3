"""Sessions: create, find, prompt, run, observe, and what belongs to one of them.

The defaults and cursors of the wire are decided here; the runtime decides everything else.
"""

from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.protocol import cursor
from perdure.protocol.cursor import SessionCursor
from perdure.protocol.session import children, recovery, rules, session, todo, usage
from perdure.protocol.session.recovery import DecideRecovery
from perdure.protocol.session.rules import SetRules
from perdure.protocol.session.session import (
    CompactSession,
    CreateSession,
    FollowEvents,
    ListSessions,
    MoveSession,
    PromptSession,
    ReadHistory,
    SwitchAgent,
    SwitchModel,
)
from perdure.protocol.session.usage import SetBudget
from perdure.schema import codec
from perdure.schema.errors import InvalidCursorError
from perdure.schema.ids import SessionID
from perdure.schema.query import Direction, SessionAnchor, SessionQuery, SessionRow
from perdure.schema.session.compaction import CompactionReport
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.recovery import RecoveryInfo
from perdure.schema.session.request_preview import ProviderContext
from perdure.schema.session.session import SessionActivity, SessionInfo
from perdure.schema.session.todo import Todos
from perdure.schema.session.usage import SessionBudget, SessionUsage
from perdure.schema.value import Value
from perdure.server import location_context
from perdure.server.call import Call, Handlers
from perdure.server.results import (
    DurableStream,
    Encoded,
    EncodedHistory,
    EncodedPage,
    NoContent,
    join_array,
)

COMPACTION_HEADER: Final = b"perdure-compaction"
BEFORE_ALL: Final = -1
_SEQ_DIGITS_MAX: Final = 15


async def create(call: Call[None, CreateSession]) -> SessionInfo:
    body = call.body
    location = call.location() if body.location is None else location_context.check(body.location)
    return await call.runtime.sessions.create(
        id=body.id,
        agent=body.agent,
        model=body.model,
        location=location,
        title=body.title,
        metadata=body.metadata,
        permissions=body.permissions,
        mcp=body.mcp,
    )


async def list_sessions(call: Call[ListSessions, None]) -> EncodedPage[SessionInfo]:
    position = _position(call)
    found = await call.runtime.sessions.list(
        position.query, limit=position.limit, anchor=position.anchor
    )
    rows, key = found.rows, call.settings.cursor_key
    return EncodedPage(
        items=tuple(row.data for row in rows),
        previous=position.link(rows[0], "previous", key) if rows and found.has_previous else None,
        next=position.link(rows[-1], "next", key) if rows and found.has_next else None,
    )


async def active(call: Call[None, None]) -> dict[SessionID, SessionActivity]:
    running = SessionActivity(type="running")
    return dict.fromkeys(await call.runtime.sessions.list_active(), running)


async def get(call: Call[None, None]) -> Encoded[SessionInfo]:
    return Encoded(await call.runtime.sessions.get(call.session_id))


async def switch_agent(call: Call[None, SwitchAgent]) -> None:
    await call.runtime.sessions.switch_agent(call.session_id, call.body.agent)


async def switch_model(call: Call[None, SwitchModel]) -> None:
    await call.runtime.sessions.switch_model(call.session_id, call.body.model)


async def move(call: Call[None, MoveSession]) -> None:
    body = call.body
    await call.runtime.sessions.move(
        call.session_id, body.destination, changes=body.move_changes is True
    )


async def prompt(call: Call[None, PromptSession]) -> AdmittedPrompt:
    body = call.body
    return await call.runtime.sessions.prompt(
        call.session_id,
        body.prompt,
        location=call.session_location,
        id=body.id,
        delivery=body.delivery or "steer",
        resume=body.resume is not False,
    )


async def interrupt(call: Call[None, None]) -> None:
    await call.runtime.sessions.interrupt(call.session_id)


async def compact(call: Call[None, CompactSession]) -> NoContent:
    """The published answer has no body, so the report is a header."""
    # Imported late: nothing else here needs it.
    import json

    report = await compact_with_report(call)
    # Headers are ASCII; a reason may quote a provider in any language.
    text = json.dumps(codec.decode_any(codec.encode(report)))
    return NoContent(((COMPACTION_HEADER, text.encode()),))


async def compact_with_report(call: Call[None, CompactSession]) -> CompactionReport:
    instruction = call.body.instruction or ""
    return await call.runtime.sessions.compact(call.session_id, instruction=instruction)


async def wait(call: Call[None, None]) -> None:
    await call.runtime.sessions.wait(call.session_id)


async def context(call: Call[None, None]) -> Encoded[tuple[SessionMessage, ...]]:
    return Encoded(join_array(await call.runtime.sessions.context(call.session_id)))


async def provider_context(call: Call[None, None]) -> Encoded[ProviderContext]:
    return Encoded(await call.runtime.sessions.provider_context(call.session_id))


async def history(call: Call[ReadHistory, None]) -> EncodedHistory[SessionEvent]:
    after, limit = call.query.after, call.query.limit
    items, has_more = await call.runtime.sessions.history(
        call.session_id,
        after=BEFORE_ALL if after is None else after,
        limit=limit or limits.PAGE_ITEMS_DEFAULT,
    )
    return EncodedHistory(items, has_more)


async def events(call: Call[FollowEvents, None]) -> DurableStream[SessionEvent]:
    after = BEFORE_ALL if call.query.after is None else call.query.after
    # A client that reconnects repeats its first `after`; the last id that it has read is newer.
    seen = call.request.header(b"last-event-id") or ""
    if seen.isascii() and seen.isdigit() and len(seen) <= _SEQ_DIGITS_MAX:
        after = max(after, int(seen))
    marks_replay = call.query.replayed == "true"
    frames = call.runtime.sessions.events(call.session_id, after=after, marks_replay=marks_replay)
    return DurableStream(frames)


async def list_children(call: Call[None, None]) -> Encoded[tuple[SessionInfo, ...]]:
    return Encoded(join_array(await call.runtime.children.list_children(call.session_id)))


async def list_todos(call: Call[None, None]) -> Todos:
    return await call.runtime.todos.load_todos(call.session_id)


async def get_usage(call: Call[None, None]) -> SessionUsage:
    return await call.runtime.usage.load_usage(call.session_id)


async def set_budget(call: Call[None, SetBudget]) -> SessionInfo:
    asked = call.body
    budget = SessionBudget(
        cost=UNSET if asked.cost is None else asked.cost,
        tokens=UNSET if asked.tokens is None else asked.tokens,
        turns=UNSET if asked.turns is None else asked.turns,
    )
    return await call.runtime.usage.set_budget(call.session_id, budget)


async def set_rules(call: Call[None, SetRules]) -> SessionInfo:
    return await call.runtime.changes.set_rules(call.session_id, call.body.permissions)


async def get_recovery(call: Call[None, None]) -> RecoveryInfo:
    return await call.runtime.recovery.load_recovery(call.session_id)


async def decide_recovery(call: Call[None, DecideRecovery]) -> None:
    await call.runtime.recovery.decide(call.session_id, call.body.decision)


class _Position(Value, kw_only=True):
    """The query of a list, and the page of it that is asked for."""

    query: SessionQuery
    limit: int
    anchor: SessionAnchor | None

    def link(self, row: SessionRow, direction: Direction, key: bytes) -> str:
        query = self.query
        sealed = SessionCursor(
            order=query.order,
            limit=self.limit,
            direction=direction,
            time=row.time_created,
            place=row.place,
            id=row.id,
            directory=query.directory,
            project=query.project,
            workspace=query.workspace,
            search=query.search,
            subpath=query.subpath,
            archived=query.archived,
        )
        return cursor.seal(sealed, key=key)


def _position(call: Call[ListSessions, None]) -> _Position:
    asked = call.query
    if asked.cursor is None:
        limit = min(asked.limit or limits.PAGE_ITEMS_DEFAULT, session.SESSIONS_PER_PAGE_MAX)
        query = SessionQuery(
            directory=asked.directory,
            project=asked.project,
            workspace=asked.workspace,
            search=asked.search,
            subpath=asked.subpath,
            archived=None if asked.archived is None else asked.archived == "true",
            order=asked.order or "desc",
        )
        return _Position(query=query, limit=limit, anchor=None)
    at = cursor.open_sessions(asked.cursor, key=call.settings.cursor_key)
    _check_alone(asked, at)
    query = SessionQuery(
        directory=at.directory,
        project=at.project,
        workspace=at.workspace,
        search=at.search,
        subpath=at.subpath,
        archived=at.archived,
        order=at.order,
    )
    anchor = SessionAnchor(time=at.time, place=at.place, id=at.id, direction=at.direction)
    return _Position(query=query, limit=at.limit, anchor=anchor)


def _check_alone(asked: ListSessions, at: SessionCursor) -> None:
    """A cursor holds the whole query. Clients may repeat the directory that they always send."""
    for name in ("limit", "order", "search", "project", "subpath", "archived"):
        if getattr(asked, name) is not None:
            raise InvalidCursorError(f"Cursor cannot be combined with {name}")
    for name in ("directory", "workspace"):
        if getattr(asked, name) not in {None, getattr(at, name)}:
            raise InvalidCursorError(f"Cursor belongs to another {name}")


HANDLERS: Final[Handlers] = {
    session.CREATE.operation_id: create,
    session.LIST.operation_id: list_sessions,
    session.ACTIVE.operation_id: active,
    session.GET.operation_id: get,
    session.SWITCH_AGENT.operation_id: switch_agent,
    session.SWITCH_MODEL.operation_id: switch_model,
    session.MOVE.operation_id: move,
    session.PROMPT.operation_id: prompt,
    session.INTERRUPT.operation_id: interrupt,
    session.COMPACT.operation_id: compact,
    session.COMPACT_WITH_REPORT.operation_id: compact_with_report,
    session.WAIT.operation_id: wait,
    session.CONTEXT.operation_id: context,
    session.PROVIDER_CONTEXT.operation_id: provider_context,
    session.HISTORY.operation_id: history,
    session.EVENTS.operation_id: events,
    children.LIST.operation_id: list_children,
    todo.LIST.operation_id: list_todos,
    usage.USAGE.operation_id: get_usage,
    usage.BUDGET.operation_id: set_budget,
    rules.RULES.operation_id: set_rules,
    recovery.GET.operation_id: get_recovery,
    recovery.DECIDE.operation_id: decide_recovery,
}
