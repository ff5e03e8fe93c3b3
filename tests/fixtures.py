"""Values and stores that tests of the core and of the log share.

Facts are made with one line each and have ids and times that read well in a failure. A store is
the real one on a real file. Nothing here asserts.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

from msgspec import UNSET

from perdure.core.session import title
from perdure.host.process_locks import SingleProcess
from perdure.ports import Processes, Row
from perdure.schema.ids import MessageID, ProjectID, SessionID, ToolCallID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import NO_TOKENS, ModelRef, TokenCache, TokenUsage
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent, SessionSeed
from perdure.schema.session.prompt import Delivery, Prompt
from perdure.schema.session.session import SessionTime
from perdure.schema.session.todo import Todo
from perdure.schema.session.tool import CallProvider, ErrorInfo, ProviderMetadata, error_info
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log.event_store import Appended, EventStore
from perdure.testing import SeededIds

ROOT: Final = Path(__file__).resolve().parent.parent
SESSION: Final = SessionID("ses_one")
OTHER: Final = SessionID("ses_two")
LOCATION: Final = LocationRef(directory="/project")
MODEL: Final = ModelRef(id="m", provider_id="p", variant="default")
TOKENS: Final = TokenUsage(input=10, output=4, reasoning=2, cache=TokenCache(read=3, write=1))
CREATED_MILLIS: Final = 1_700_000_000_000

EventT = TypeVar("EventT", bound=SessionEvent)


class Facts:
    """Makes the facts of one Session; each is a second later than the one before."""

    def __init__(self, session_id: SessionID = SESSION) -> None:
        self.session_id = session_id
        self._now = CREATED_MILLIS

    def created(self, *, placeholder: bool = True) -> events.SessionCreated:
        now = CREATED_MILLIS
        return events.SessionCreated(
            session_id=self.session_id,
            info=SessionSeed(
                id=self.session_id,
                slug="calm-oak",
                project_id=ProjectID("global"),
                directory=LOCATION.directory,
                path="",
                title=title.placeholder(now) if placeholder else "Chosen",
                version="1",
                cost=0,
                tokens=NO_TOKENS,
                time=SessionTime(created=now, updated=now),
            ),
        )

    def admitted(
        self, message: str, text: str = "hello", delivery: Delivery = "steer"
    ) -> events.PromptAdmitted:
        return events.PromptAdmitted(
            *self._stamp, message_id=MessageID(message), prompt=Prompt(text), delivery=delivery
        )

    def promoted(
        self, message: str, text: str = "hello", delivery: Delivery = "steer"
    ) -> events.PromptPromoted:
        return events.PromptPromoted(
            *self._stamp, message_id=MessageID(message), prompt=Prompt(text), delivery=delivery
        )

    def told(self, message: str, text: str = "now it is Tuesday") -> events.ContextUpdated:
        return events.ContextUpdated(*self._stamp, message_id=MessageID(message), text=text)

    def compacted(self, message: str) -> events.CompactionEnded:
        return events.CompactionEnded(
            *self._stamp, message_id=MessageID(message), reason="auto", text="so far", recent="last"
        )

    def step(self, message: str, *, snapshot: str | None = None) -> events.StepStarted:
        return events.StepStarted(
            *self._owned(message), agent="build", model=MODEL, snapshot=snapshot or UNSET
        )

    def ended(
        self, message: str, finish: str = "stop", *, snapshot: str | None = None
    ) -> events.StepEnded:
        return events.StepEnded(
            *self._owned(message),
            finish=finish,
            cost=0.25,
            tokens=TOKENS,
            snapshot=snapshot or UNSET,
            files=("a.txt",) if snapshot else UNSET,
        )

    def failed(self, message: str) -> events.StepFailed:
        return events.StepFailed(*self._owned(message), error=error_info("the provider is gone"))

    def text(self, message: str, part: str, text: str) -> list[SessionEvent]:
        return [
            events.TextStarted(*self._owned(message), text_id=part),
            events.TextEnded(*self._owned(message), text_id=part, text=text),
        ]

    def reasoning(
        self, message: str, part: str, text: str, metadata: ProviderMetadata | None = None
    ) -> list[SessionEvent]:
        return [
            events.ReasoningStarted(*self._owned(message), reasoning_id=part),
            events.ReasoningEnded(
                *self._owned(message),
                reasoning_id=part,
                text=text,
                provider_metadata=metadata or UNSET,
            ),
        ]

    def input_started(self, message: str, call: str) -> events.ToolInputStarted:
        return events.ToolInputStarted(*self._owned(message), call_id=ToolCallID(call), name="read")

    def input_ended(self, message: str, call: str, text: str = "{}") -> events.ToolInputEnded:
        return events.ToolInputEnded(*self._owned(message), call_id=ToolCallID(call), text=text)

    def called(
        self, message: str, call: str, provider: CallProvider | None = None
    ) -> events.ToolCalled:
        return events.ToolCalled(
            *self._owned(message),
            call_id=ToolCallID(call),
            tool="read",
            input={"path": "a"},
            provider=provider or CallProvider(executed=False),
        )

    def succeeded(
        self, message: str, call: str, provider: CallProvider | None = None
    ) -> events.ToolSucceeded:
        return events.ToolSucceeded(
            *self._owned(message),
            call_id=ToolCallID(call),
            structured={"lines": 1},
            content=(),
            provider=provider or CallProvider(executed=False),
        )

    def tool_failed(
        self, message: str, call: str, error: ErrorInfo | None = None
    ) -> events.ToolFailed:
        return events.ToolFailed(
            *self._owned(message),
            call_id=ToolCallID(call),
            error=error or error_info("no such file"),
            provider=CallProvider(executed=False),
        )

    def todos(self, message: str, *contents: str) -> events.TodosUpdated:
        items = tuple(Todo(content=item, status="pending", priority="low") for item in contents)
        return events.TodosUpdated(
            *self._owned(message), call_id=ToolCallID("call_todos"), todos=items
        )

    def stamped(self, kind: Callable[..., EventT], **fields: object) -> EventT:
        """Any other fact."""
        return kind(timestamp=self.tick(), session_id=self.session_id, **fields)

    def tick(self) -> int:
        self._now += 1_000
        return self._now

    @property
    def _stamp(self) -> tuple[int, SessionID]:
        return self.tick(), self.session_id

    def _owned(self, message: str) -> tuple[int, SessionID, MessageID]:
        return *self._stamp, MessageID(message)


def answered(facts: Facts, prompt: str, answer: str, text: str) -> list[SessionEvent]:
    """A prompt, promoted and answered in one step."""
    return [
        facts.admitted(prompt, text),
        facts.promoted(prompt, text),
        facts.step(answer),
        *facts.text(answer, "text-0", f"answer to {text}"),
        facts.ended(answer),
    ]


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[SqliteDatabase]:
    """A current database on a real file."""
    migrate.migrate(str(path))
    async with SqliteDatabase(str(path)) as database:
        yield database


@asynccontextmanager
async def opened_store(
    path: Path, *, processes: Processes | None = None, seed: int = 0
) -> AsyncGenerator[EventStore]:
    async with opened(path) as database:
        yield EventStore(database, SeededIds(seed), processes or SingleProcess())


async def append(
    store: EventStore, events: Sequence[SessionEvent], session_id: SessionID = SESSION
) -> Appended:
    return await store.append(session_id, events, location=LOCATION)


async def rows(store: EventStore, sql: str) -> list[Row]:
    return list(await store.database.read(lambda tx: tx.fetch(sql)))


PROJECTIONS: Final = (
    ("session", "id"),
    ("session_message", "session_id, seq"),
    ("session_input", "session_id, admitted_seq"),
    ("todo", "session_id, seq"),
)


async def dump(store: EventStore) -> dict[str, list[Row]]:
    """Every row of every projection, byte for byte, in an order of its own."""
    return {
        table: await rows(store, f"SELECT * FROM {table} ORDER BY {key}")
        for table, key in PROJECTIONS
    }


async def child(module: str, *arguments: str) -> asyncio.subprocess.Process:
    """Another process of this program, running one of the tests' own modules."""
    search = os.pathsep.join(path for path in sys.path if path)
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": search},
        cwd=ROOT,
    )


async def line(process: asyncio.subprocess.Process) -> str:
    """The next line that a child says."""
    assert process.stdout is not None
    async with asyncio.timeout(20):
        return (await process.stdout.readline()).decode().strip()


async def end(process: asyncio.subprocess.Process) -> int:
    """Close a child's input, which tells it to go, and wait for its exit status."""
    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(20):
        return await process.wait()
