"""A runtime small enough to read, behind the protocols the server asks for, and a raw client.

The stage keeps Sessions in dictionaries and lets a test decide when a stream has something to say.
The client speaks bytes over a socket, so that a test can be as rude as it likes.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from perdure.host.clock import SystemClock
from perdure.schema import codec
from perdure.schema.approval.permission import (
    PermissionDecision,
    PermissionInput,
    PermissionRequest,
    Reply,
    SavedRule,
)
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.codec import JsonValue
from perdure.schema.errors import (
    MessageNotFoundError,
    NothingToDecideError,
    PermissionConflictError,
    PermissionNotFoundError,
    PromptConflictError,
    QuestionNotFoundError,
    SessionBusyError,
    SessionNotFoundError,
)
from perdure.schema.ids import MessageID, PermissionID, ProjectID, QuestionID, Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import NO_TOKENS, ModelRef
from perdure.schema.query import (
    MessageAnchor,
    MessageRow,
    MessageRows,
    Order,
    SessionAnchor,
    SessionQuery,
    SessionRow,
    SessionRows,
)
from perdure.schema.session.prompt import Delivery, Prompt, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.recovery import Decision, RecoveryInfo
from perdure.schema.session.session import RevertState, SessionInfo, SessionTime
from perdure.schema.session.todo import Todos
from perdure.server.app import App, make_app
from perdure.server.http.asgi import Application
from perdure.server.http.server import HttpServer
from perdure.server.services import Services
from perdure.server.settings import HttpLimits, ServerSettings
from perdure.testing.seeded_ids import SeededIds
from tests.contract.server.staged_changes import StagedChanges
from tests.contract.server.staged_children import StagedChildren
from tests.contract.server.staged_files import StagedFiles
from tests.contract.server.staged_health import StagedHealth
from tests.contract.server.staged_integrations import StagedIntegrations
from tests.contract.server.staged_jobs import StagedJobs
from tests.contract.server.staged_locations import StagedLocations
from tests.contract.server.staged_terminals import StagedTerminals

SESSION: Final = SessionID("ses_one")
MESSAGE: Final = MessageID("msg_one")
KEY: Final = b"k" * 32
PATIENCE_SECONDS: Final = 5
QUICK: Final = HttpLimits(
    read_seconds_max=0.2, linger_seconds_max=0.2, stall_seconds_max=1, shutdown_seconds_max=0.5
)


def settings(
    *,
    password: str | None = None,
    origins: frozenset[str] = frozenset(),
    http: HttpLimits | None = None,
    heartbeat_seconds: float = 15,
    body_bytes_max: int = 1024 * 1024,
) -> ServerSettings:
    return ServerSettings(
        default_directory="/work/here",
        cursor_key=KEY,
        password=password,
        allowed_origins=origins,
        http=http or HttpLimits(),
        heartbeat_seconds=heartbeat_seconds,
        body_bytes_max=body_bytes_max,
    )


@dataclass(slots=True)
class StagedReverts:
    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    async def stage(
        self, session_id: SessionID, message_id: MessageID, *, files: bool
    ) -> RevertState:
        self.calls.append(("stage", session_id, message_id, files))
        if message_id == "msg_absent":
            raise MessageNotFoundError(session_id, message_id)
        if message_id == "msg_busy":
            raise SessionBusyError(session_id)
        return RevertState(message_id=message_id)

    async def clear(self, session_id: SessionID) -> None:
        self.calls.append(("clear", session_id))

    async def commit(self, session_id: SessionID) -> None:
        self.calls.append(("commit", session_id))


@dataclass(slots=True)
class StagedSessions:
    sessions: dict[SessionID, SessionInfo] = field(default_factory=dict[SessionID, SessionInfo])
    messages_of: dict[SessionID, list[MessageRow]] = field(
        default_factory=dict[SessionID, list[MessageRow]]
    )
    revert: StagedReverts = field(default_factory=StagedReverts)
    frames: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue[bytes])
    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    wait_cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    followed_to_the_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(
        self,
        *,
        id: SessionID | None,
        agent: str | None,
        model: ModelRef | None,
        location: LocationRef,
    ) -> SessionInfo:
        made = id or SessionID(f"ses_{len(self.sessions)}")
        self.calls.append(("create", made, agent, model, location))
        if made not in self.sessions:
            self.sessions[made] = session_info(made, len(self.sessions), location)
        return self.sessions[made]

    async def exists(self, session_id: SessionID) -> bool:
        return session_id in self.sessions

    async def get(self, session_id: SessionID) -> bytes:
        if session_id == "ses_broken":
            raise RuntimeError("the secret is hunter2")
        if session_id not in self.sessions:
            raise SessionNotFoundError(session_id)
        return codec.encode(self.sessions[session_id])

    async def list(
        self, query: SessionQuery, *, limit: int, anchor: SessionAnchor | None
    ) -> SessionRows:
        self.calls.append(("list", query, limit, anchor))
        rows = [
            SessionRow(data=codec.encode(info), id=info.id, time_created=info.time.created)
            for info in self.sessions.values()
            if query.directory in {None, info.location.directory}
        ]
        rows.sort(key=lambda row: row.time_created, reverse=query.order == "desc")
        at = None if anchor is None else [row.id for row in rows].index(anchor.id)
        first, last = _window(len(rows), at, anchor and anchor.direction, limit)
        return SessionRows(
            rows=tuple(rows[first:last]), has_previous=first > 0, has_next=last < len(rows)
        )

    async def prompt(
        self,
        session_id: SessionID,
        prompt: PromptInput,
        *,
        id: MessageID | None,
        delivery: Delivery,
        resume: bool,
    ) -> AdmittedPrompt:
        self.calls.append(("prompt", session_id, prompt, id, delivery, resume))
        if id == "msg_taken":
            raise PromptConflictError(id)
        return AdmittedPrompt(
            admitted_seq=Seq(1),
            id=id or MESSAGE,
            session_id=session_id,
            prompt=Prompt(text=prompt.text),
            delivery=delivery,
            time_created=1,
        )

    async def messages(
        self, session_id: SessionID, *, limit: int, order: Order, anchor: MessageAnchor | None
    ) -> MessageRows:
        rows = sorted(
            self.messages_of.get(session_id, []), key=lambda row: row.seq, reverse=order == "desc"
        )
        at = None if anchor is None else [row.seq for row in rows].index(anchor.seq)
        first, last = _window(len(rows), at, anchor and anchor.direction, limit)
        return MessageRows(
            rows=tuple(rows[first:last]), has_previous=first > 0, has_next=last < len(rows)
        )

    async def message(self, session_id: SessionID, message_id: MessageID) -> bytes:
        for row in self.messages_of.get(session_id, []):
            if row.id == message_id:
                return row.data
        raise MessageNotFoundError(session_id, message_id)

    async def provider_context(self, session_id: SessionID) -> bytes:
        return b'{"sources":[],"messages":[]}'

    async def context(self, session_id: SessionID) -> tuple[bytes, ...]:
        return tuple(row.data for row in self.messages_of.get(session_id, []))

    async def history(
        self, session_id: SessionID, *, after: int, limit: int
    ) -> tuple[tuple[bytes, ...], bool]:
        self.calls.append(("history", session_id, after, limit))
        return (b'{"seq":1}', b'{"seq":2}'), True

    async def events(self, session_id: SessionID, *, after: int) -> AsyncIterator[bytes]:
        self.calls.append(("events", session_id, after))
        try:
            while True:
                yield await self.frames.get()
        finally:
            self.followed_to_the_end.set()

    def active(self) -> tuple[SessionID, ...]:
        return (SESSION,)

    async def interrupt(self, session_id: SessionID) -> None:
        self.calls.append(("interrupt", session_id))

    async def compact(self, session_id: SessionID, *, instruction: str) -> None:
        self.calls.append(("compact", session_id, instruction))

    async def wait(self, session_id: SessionID) -> None:
        self.calls.append(("wait", session_id))
        self.waiting.set()
        try:
            await self.idle.wait()
        except asyncio.CancelledError:
            self.wait_cancelled.set()
            raise

    async def switch_agent(self, session_id: SessionID, agent: str) -> None:
        self.calls.append(("switch_agent", session_id, agent))

    async def switch_model(self, session_id: SessionID, model: ModelRef) -> None:
        self.calls.append(("switch_model", session_id, model))

    async def move(self, session_id: SessionID, destination: LocationRef, *, changes: bool) -> None:
        self.calls.append(("move", session_id, destination, changes))


def _window(size: int, at: int | None, direction: str | None, limit: int) -> tuple[int, int]:
    if at is None:
        return 0, min(size, limit)
    if direction == "next":
        return at + 1, min(size, at + 1 + limit)
    return max(0, at - limit), at


class StagedSubscription:
    def __init__(self, location: LocationRef | None) -> None:
        self.location = location
        self.lagged = False
        self.frames: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def next(self) -> bytes | None:
        return await self.frames.get()


class StagedLive:
    def __init__(self) -> None:
        self.subscriptions: list[StagedSubscription] = []
        self.left = asyncio.Event()

    @contextmanager
    def subscribe(self, location: LocationRef | None) -> Generator[StagedSubscription]:
        subscription = StagedSubscription(location)
        self.subscriptions.append(subscription)
        try:
            yield subscription
        finally:
            self.left.set()


@dataclass(slots=True)
class StagedPermissions:
    """Asks about everything, and remembers what it was told."""

    requests: dict[PermissionID, PermissionRequest] = field(
        default_factory=dict[PermissionID, PermissionRequest]
    )
    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    async def create(
        self,
        session_id: SessionID,
        given: PermissionInput,
        *,
        id: PermissionID | None,
        agent: str | None,
    ) -> PermissionDecision:
        self.calls.append(("create", session_id, given, id, agent))
        chosen = id or PermissionID("per_made")
        if chosen in self.requests:
            raise PermissionConflictError(chosen)
        self.requests[chosen] = PermissionRequest(
            id=chosen,
            session_id=session_id,
            action=given.action,
            resources=given.resources,
            save=given.save,
            metadata=given.metadata,
            source=given.source,
        )
        return PermissionDecision(chosen, "ask")

    async def list(self, session_id: SessionID) -> tuple[PermissionRequest, ...]:
        return tuple(r for r in self.requests.values() if r.session_id == session_id)

    async def get(self, session_id: SessionID, request_id: PermissionID) -> PermissionRequest:
        found = self.requests.get(request_id)
        if found is None or found.session_id != session_id:
            raise PermissionNotFoundError(request_id)
        return found

    async def reply(
        self,
        session_id: SessionID,
        request_id: PermissionID,
        reply: Reply,
        *,
        message: str | None,
    ) -> None:
        await self.get(session_id, request_id)
        del self.requests[request_id]
        self.calls.append(("reply", session_id, request_id, reply, message))

    async def pending(self, ref: LocationRef) -> tuple[PermissionRequest, ...]:
        return tuple(self.requests.values())

    async def saved(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        return (SavedRule(id="psv_1", project_id=project_id, action="bash", resource="ls *"),)

    async def remove_saved(self, rule_id: str) -> None:
        self.calls.append(("remove_saved", rule_id))


@dataclass(slots=True)
class StagedQuestions:
    """Takes every answer to what it was given to ask."""

    requests: dict[QuestionID, QuestionRequest] = field(
        default_factory=dict[QuestionID, QuestionRequest]
    )
    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    async def list(self, session_id: SessionID) -> tuple[QuestionRequest, ...]:
        return tuple(r for r in self.requests.values() if r.session_id == session_id)

    async def reply(self, session_id: SessionID, request_id: QuestionID, answers: Answers) -> None:
        self._take(session_id, request_id)
        self.calls.append(("reply", session_id, request_id, answers))

    async def reject(self, session_id: SessionID, request_id: QuestionID) -> None:
        self._take(session_id, request_id)
        self.calls.append(("reject", session_id, request_id))

    async def pending(self, ref: LocationRef) -> tuple[QuestionRequest, ...]:
        return tuple(self.requests.values())

    def _take(self, session_id: SessionID, request_id: QuestionID) -> None:
        found = self.requests.get(request_id)
        if found is None or found.session_id != session_id:
            raise QuestionNotFoundError(request_id)
        del self.requests[request_id]


@dataclass(slots=True)
class StagedTodos:
    lists: dict[SessionID, Todos] = field(default_factory=dict[SessionID, Todos])

    async def load_todos(self, session_id: SessionID) -> Todos:
        return self.lists.get(session_id, ())


class StagedRecovery:
    async def load_recovery(self, session_id: SessionID) -> RecoveryInfo:
        return RecoveryInfo(waiting=False)

    async def decide(self, session_id: SessionID, decision: Decision) -> None:
        raise NothingToDecideError(session_id)


@dataclass(slots=True)
class Stage:
    sessions: StagedSessions = field(default_factory=StagedSessions)
    changes: StagedChanges = field(default_factory=StagedChanges)
    todos: StagedTodos = field(default_factory=StagedTodos)
    jobs: StagedJobs = field(default_factory=StagedJobs)
    live: StagedLive = field(default_factory=StagedLive)
    permissions: StagedPermissions = field(default_factory=StagedPermissions)
    questions: StagedQuestions = field(default_factory=StagedQuestions)
    integrations: StagedIntegrations = field(default_factory=StagedIntegrations)

    def __post_init__(self) -> None:
        here = LocationRef("/work/here")
        for created, name in enumerate((SESSION, "ses_two", "ses_broken")):
            session_id = SessionID(name)
            self.sessions.sessions[session_id] = session_info(session_id, created, here)
        self.sessions.messages_of[SESSION] = [message_row(number) for number in range(1, 6)]

    def services(self) -> Services:
        clock = SystemClock()
        return Services(
            health=StagedHealth(),
            sessions=self.sessions,
            changes=self.changes,
            forks=self.changes,
            deletions=self.changes,
            snapshots=self.changes,
            inbox=self.changes,
            todos=self.todos,
            recovery=StagedRecovery(),
            jobs=self.jobs,
            children=StagedChildren(),
            usage=self.changes,
            live=self.live,
            locations=StagedLocations(),
            files=StagedFiles(),
            terminals=StagedTerminals(),
            permissions=self.permissions,
            questions=self.questions,
            integrations=self.integrations,
            ids=SeededIds(clock=clock),
            clock=clock,
        )

    def app(self, given: ServerSettings | None = None) -> App:
        return make_app(self.services(), given or settings())


def session_info(id: SessionID, created: int, location: LocationRef) -> SessionInfo:
    return SessionInfo(
        id=id,
        project_id=ProjectID("global"),
        cost=0,
        tokens=NO_TOKENS,
        time=SessionTime(created=created, updated=created),
        title="t",
        location=location,
    )


def message_row(number: int) -> MessageRow:
    message_id = MessageID(f"msg_{number}")
    return MessageRow(data=codec.encode({"id": message_id}), id=message_id, seq=number)


@asynccontextmanager
async def listening(
    app: Application, limits: HttpLimits | None = None
) -> AsyncGenerator[tuple[HttpServer, int]]:
    server = HttpServer(app, clock=SystemClock(), limits=limits or HttpLimits())
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.stop()


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> JsonValue:
        return codec.decode_any(self.body)


class RawClient:
    """One TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> Answer:
        """A response's head, with no body."""
        raw = await self.reader.readuntil(b"\r\n\r\n")
        status_line, *lines = raw.decode("latin-1").rstrip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        return Answer(int(status_line.split()[1]), headers, b"")

    async def answer(self, *, head: bool = False) -> Answer:
        """A whole response."""
        answer = await self.head()
        if head:
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            chunks: list[bytes] = []
            while chunk := await self.chunk():
                chunks.append(chunk)
            return Answer(answer.status, answer.headers, b"".join(chunks))
        length = int(answer.headers.get("content-length", "0"))
        return Answer(answer.status, answer.headers, await self.reader.readexactly(length))

    async def chunk(self) -> bytes:
        """The next chunk of a streamed body; empty at its end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def rest(self) -> bytes:
        """Everything until the server closes."""
        return await self.reader.read()


@asynccontextmanager
async def connected(port: int) -> AsyncGenerator[RawClient]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield RawClient(reader, writer)
        finally:
            writer.transport.abort()


async def call(
    port: int,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection of its own."""
    given = {"host": "localhost"} | dict(headers or {})
    if body is not None:
        given = {"content-type": "application/json", "content-length": str(len(body))} | given
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    async with connected(port) as client:
        await client.say("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        return await client.answer(head=method == "HEAD")
