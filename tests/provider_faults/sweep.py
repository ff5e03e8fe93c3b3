"""A whole runtime against a faulty provider: one Session for each fault, and what must hold of it.

Everything is real: sockets, HTTP, the store on a file. A prompt meets the fault; the next prompt of
the same Session must be answered. What is waited for between attempts is noted and not waited for.
"""

import asyncio
import itertools
import logging
import os
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perdure.core import limits
from perdure.core.models.catalog import host_provider
from perdure.host import data_directory, environment
from perdure.host.clock import SystemClock
from perdure.host.http.client import HttptoolsTransport
from perdure.host.ids import SystemIds
from perdure.host.process_locks import SingleProcess
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.http.model_call import CallLimits, model_call
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.route import Route
from perdure.runtime.app.runtime import Platform, Runtime, RuntimeSettings, compose
from perdure.schema.codec import Record
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.message import AssistantMessage
from perdure.schema.session.prompt import PromptInput
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.tables import message_table
from perdure.testing.faulty_provider import PLAIN_ANSWER, FaultyProvider, ProviderRequest
from perdure.testing.manual_clock import EPOCH_MILLIS
from perdure.testing.provider_answer import ProviderAnswer
from perdure.tools.api.tool import Tool, ToolCallContext
from tests.provider_faults.recording import NOTES

TOGETHER: Final = 8
PATIENCE_SECONDS: Final = 20
FRAME_BYTES_MAX: Final = 64 * 1024
QUIET_BYTES_MAX: Final = 2 * FRAME_BYTES_MAX
FAULT, NEXT = "meet the fault", "go on"
PARTS: Final = (events.TextStarted, events.ReasoningStarted, events.ToolInputStarted)
PATIENT, HASTY = "patient", "hasty"
"""Two models of one provider: the second takes a short silence for a stall."""
ONE_TOOL: Final = """{"permissions": [
    {"action": "*", "resource": "*", "effect": "deny"},
    {"action": "record", "resource": "*", "effect": "allow"}
]}"""
"""Of thousands of requests none needs to describe tools that no answer here calls."""


class Note(Record):
    note: str


class HurriedClock(SystemClock):
    """What a drain waits for passes at once and is noted. The time stands still."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def now_millis(self) -> int:
        return EPOCH_MILLIS

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        if task is None or not task.get_name().startswith("drain "):
            await super().sleep(seconds)
            return
        self.waited.append(seconds)


class Even:
    """A chance that spreads nothing."""

    def random(self) -> float:
        return 0.5


@dataclass(frozen=True, slots=True)
class Met:
    """What came of one fault."""

    log: list[SessionEvent]
    notes: list[str]
    """What the tool really recorded."""
    attempts: int
    """How often the prompt that met the fault was sent before any tool result."""
    answered: bool
    """Whether the next prompt was."""

    def count(self, *kinds: type[SessionEvent]) -> int:
        return sum(isinstance(event, kinds) for event in self.log)

    @property
    def first(self) -> list[SessionEvent]:
        """What was recorded before the next prompt."""
        admitted = [n for n, e in enumerate(self.log) if isinstance(e, events.PromptAdmitted)]
        return self.log[: admitted[1]]

    @property
    def published(self) -> bool:
        return any(isinstance(event, PARTS) for event in self.first)

    @property
    def called(self) -> bool:
        """Whether an answer had begun a call."""
        return any(isinstance(event, events.ToolInputStarted) for event in self.first)

    @property
    def wrongly_retried(self) -> bool:
        """Whether something was asked for again after a call had begun, or would be said twice.

        What had been said is recorded as failed, and left out of what the model is sent.
        """
        retries = [n for n, e in enumerate(self.first) if isinstance(e, events.Retried)]
        for begin, end in itertools.pairwise((0, *retries)):
            before = self.first[begin:end]
            if any(isinstance(event, events.ToolInputStarted) for event in before):
                return True
            if any(isinstance(event, PARTS) for event in before):
                excluded, failed = before[-2:]
                if not isinstance(excluded, events.MessageExcluded):
                    return True
                if not isinstance(failed, events.StepFailed):
                    return True
        return False

    @property
    def error(self) -> str:
        """Why the first step failed; empty when none did."""
        failed = [event for event in self.first if isinstance(event, events.StepFailed)]
        return failed[0].error.message if failed else ""

    def check(self, fault: object) -> None:
        """What holds whatever the fault is."""
        steps = self.count(events.StepEnded, events.StepFailed)
        assert self.count(events.StepStarted) == steps, fault
        opened = [e.call_id for e in self.log if isinstance(e, events.ToolInputStarted)]
        settled = self.count(events.ToolSucceeded, events.ToolFailed)
        assert len(opened) == settled, fault
        # Damage may cost a call, but none is run twice or with anything but its own input.
        assert len(set(self.notes)) == len(self.notes), fault
        assert set(self.notes) <= set(NOTES), fault
        assert not self.wrongly_retried, fault
        assert self.attempts == 1 or self.count(events.Retried) == self.attempts - 1, fault
        assert 1 <= self.attempts <= limits.RETRY_OVERLOAD_ATTEMPTS_MAX, fault
        assert self.answered, fault


@dataclass(slots=True)
class Sweep:
    runtime: Runtime
    provider: FaultyProvider
    waits: HurriedClock
    answers: dict[str, ProviderAnswer] = field(default_factory=dict[str, ProviderAnswer])
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    notes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    async def meet_all(self, answers: Sequence[ProviderAnswer], *, model: str) -> list[Met]:
        """A Session for each answer, a few at a time."""
        met: list[Met] = []
        for first in range(0, len(answers), TOGETHER):
            some = answers[first : first + TOGETHER]
            met += await asyncio.gather(*(self.meet(answer, model=model) for answer in some))
        return met

    async def meet(self, answer: ProviderAnswer, *, model: str = PATIENT) -> Met:
        session_id = SessionID(f"ses_fault{next(self._numbers):06}")
        self.answers[session_id] = answer
        await self.runtime.sessions.create(
            id=session_id, model=ModelRef(id=model, provider_id="faulty")
        )
        await self._say(session_id, FAULT)
        if model != PATIENT:
            # Going on must not depend on how quick this machine is.
            patient = ModelRef(id=PATIENT, provider_id="faulty")
            await self.runtime.sessions.switch_model(session_id, patient)
        await self._say(session_id, NEXT)
        found = await self.runtime.store.read(session_id, limit=1_000)
        return Met(
            log=[event for _, _, event in found],
            notes=sorted(self.notes.get(session_id, [])),
            attempts=self.attempts[session_id],
            answered=await self._answered(session_id),
        )

    async def _say(self, session_id: SessionID, text: str) -> None:
        await self.runtime.sessions.prompt(session_id, PromptInput(text=text))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.runtime.sessions.wait(session_id)

    def answer(self, request: ProviderRequest) -> ProviderAnswer:
        last = request.body["messages"][-1]
        if last["role"] != "user" or last["content"] != FAULT:
            return PLAIN_ANSWER
        session = request.headers["x-session-id"]
        self.attempts[session] = self.attempts.get(session, 0) + 1
        return self.answers[session]

    async def record(self, input: Note, context: ToolCallContext) -> Note:
        self.notes.setdefault(context.session_id, []).append(input.note)
        return input

    async def _answered(self, session_id: SessionID) -> bool:
        newest = await self.runtime.store.database.read(
            lambda tx: message_table.latest_conversation_message(tx, session_id)
        )
        message = None if newest is None else newest.message()
        return isinstance(message, AssistantMessage) and message.finish == "stop"


@asynccontextmanager
async def sweeping(*, stall_seconds: float = 0.15) -> AsyncGenerator[Sweep]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-", dir=memory) as place:
        Path(place, "opencode.json").write_text(ONE_TOOL, encoding="utf-8")
        async with FaultyProvider() as provider, _transport() as transport:
            waits = HurriedClock()
            route = Route(protocol=OPENAI_CHAT, base_url=provider.url, model=ModelFacts(name="m"))
            models = {
                name: model_call(
                    route,
                    transport,
                    waits,
                    limits=CallLimits(
                        first_byte_seconds_max=seconds,
                        idle_seconds_max=seconds,
                        frame_bytes_max=FRAME_BYTES_MAX,
                        quiet_bytes_max=QUIET_BYTES_MAX,
                    ),
                )
                for name, seconds in ((PATIENT, PATIENCE_SECONDS), (HASTY, stall_seconds))
            }
            settings = RuntimeSettings(
                environment=environment.from_variables(
                    {"HOME": place, "TMPDIR": place, "PERDURE_TRUSTED": "*"}
                ),
                data_dir=f"{place}/data",
                default_directory=place,
                providers=(host_provider("faulty", models),),
            )
            async with _runtime(settings, waits) as runtime:
                sweep = Sweep(runtime, provider, waits)
                provider.otherwise = sweep.answer
                with runtime.tools.register(_tool(sweep)):
                    yield sweep


@asynccontextmanager
async def _runtime(settings: RuntimeSettings, clock: HurriedClock) -> AsyncGenerator[Runtime]:
    path = data_directory.prepare(settings.data_dir)
    migrate.migrate(path)
    async with SqliteDatabase(path) as database:
        foundations = Platform(
            database=database,
            processes=SingleProcess(),
            clock=clock,
            ids=SystemIds(SystemClock()),
            chance=Even(),
        )
        async with compose(settings, foundations, path) as runtime:
            yield runtime


@asynccontextmanager
async def _transport() -> AsyncGenerator[HttptoolsTransport]:
    transport = HttptoolsTransport()
    try:
        yield transport
    finally:
        await transport.aclose()


def _tool(sweep: Sweep) -> Tool[Note, Note]:
    return Tool(
        name="record",
        description="Writes down a note.",
        input=Note,
        output=Note,
        execute=sweep.record,
    )


class Escaped(logging.Handler):
    """Every error that the program logged: whatever escaped from where it should have ended."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))
