"""Follows one Session and tells its client every change, once and in order.

Two streams are read: that of the log, which has everything and all processes, and the live one,
which is first and has fragments. The transcript takes each event once, whichever comes first. What
a slow client has not read is not kept twice: the log is read as fast as the client reads.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Final, assert_never

from msgspec import UNSET

from perdure.acp.client_features import ClientFeatures
from perdure.acp.schema.content import TextBlock
from perdure.acp.schema.updates import (
    AgentChunk,
    CompactionUpdate,
    InfoUpdate,
    Notice,
    ThoughtChunk,
    Update,
)
from perdure.acp.show import messages, tool_calls
from perdure.acp.show.timestamps import iso_time
from perdure.acp.turn_end import is_interrupt
from perdure.client.client import Client, resume_events
from perdure.client.errors import ClientError
from perdure.client.typed_events import DurableEvent, LiveEvent, UnknownFact
from perdure.core.limits import ACP_EVENTS_WAITING_MAX
from perdure.core.transcript.change import (
    Change,
    InboxChanged,
    MessageAdded,
    MessageChanged,
    MessagesRemoved,
    Noticed,
    PartAdded,
    PartChanged,
    SessionChanged,
    SessionRemoved,
    StatusReported,
    TextAppended,
    TodosWritten,
)
from perdure.core.transcript.transcript import Transcript
from perdure.schema.errors import DeclaredError
from perdure.schema.ids import MessageID, Seq
from perdure.schema.session.compaction import CompactionReported, CompactionStarted
from perdure.schema.session.event import Retried, SessionEvent
from perdure.schema.session.message import (
    AssistantMessage,
    CompactionMessage,
    SessionMessage,
    ShellMessage,
    ToolPart,
    UserMessage,
)
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.tool import PendingState

logger = logging.getLogger(__name__)

Tell = Callable[[Update], Awaitable[None]]
_CHUNKS: Final = {"text": AgentChunk, "reasoning": ThoughtChunk}


class SessionFeed:
    def __init__(
        self,
        client: Client,
        transcript: Transcript,
        tell: Tell,
        *,
        features: ClientFeatures,
        echoes_prompts: bool = False,
    ) -> None:
        self._client = client
        self._transcript = transcript
        self._tell = tell
        self._features = features
        self._echoes_prompts = echoes_prompts
        self._events: asyncio.Queue[LiveEvent | DurableEvent | None] = asyncio.Queue(
            ACP_EVENTS_WAITING_MAX
        )
        self._told = asyncio.Condition()
        self._own: set[MessageID] = set()
        self._compactions = 0
        self._shown = transcript.session
        self.answered = asyncio.Event()
        """An answer ended, so that the usage is another one."""
        self.chosen = asyncio.Event()
        """The agent or the model is another one."""
        self.is_gone = False
        """The Session was deleted, or can no longer be followed."""
        self.prompts = 0
        """Prompts that wait for the end of the work, and are answered with its failure."""

    @property
    def session(self) -> SessionInfo:
        return self._transcript.session

    @property
    def directory(self) -> str:
        return self.session.location.directory

    @property
    def messages(self) -> tuple[SessionMessage, ...]:
        return tuple(self._transcript.messages.values())

    @property
    def is_answering(self) -> bool:
        last = self.messages[-1] if self._transcript.messages else None
        return isinstance(last, AssistantMessage) and last.time.completed is UNSET

    def expect(self, message_id: MessageID) -> None:
        """This prompt is the client's own, which it has shown itself."""
        if not self._echoes_prompts:
            self._own.add(message_id)

    def take(self, event: LiveEvent) -> None:
        """Take an event of the live stream. If there is no room, the log brings it later."""
        if not self._events.full():
            self._events.put_nowait(event)

    async def run(self) -> None:
        """Follow the Session until it is deleted, or this is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(self._read_log())
                await self._apply_all()
                reading.cancel()
        finally:
            self.is_gone = True
            await self._wake()

    async def reach(self, seq: Seq) -> None:
        """Wait until everything up to an event of the log is told."""
        async with self._told:
            await self._told.wait_for(lambda: self._transcript.seq >= seq or self.is_gone)

    async def _read_log(self) -> None:
        events = resume_events(self._client, self.session.id, after=self._transcript.seq)
        try:
            async with aclosing(events) as log:
                async for event in log:
                    await self._events.put(event)
        except (ClientError, DeclaredError) as error:
            logger.warning("%s can no longer be followed: %s", self.session.id, error)
        await self._events.put(None)

    async def _apply_all(self) -> None:
        while not self.is_gone and (event := await self._events.get()) is not None:
            # What is told is told before anything can wait for it.
            for change in self._changes(event):
                for update in self._updates(change):
                    await self._tell(update)
            await self._wake()

    async def _wake(self) -> None:
        async with self._told:
            self._told.notify_all()

    def _changes(self, event: LiveEvent | DurableEvent) -> tuple[Change, ...]:
        data = event.data
        if event.durable is not None:
            known = data if isinstance(data, SessionEvent) else None
            return self._transcript.apply_durable(event.durable.seq, known)
        if isinstance(data, UnknownFact | SessionEvent):
            return ()
        return self._transcript.apply_live(data)

    # ---- what is told ---------------------------------------------------------------------------

    def _updates(self, change: Change) -> Iterator[Update]:
        match change:
            case TextAppended() | PartAdded() | PartChanged():
                yield from self._show_part(change)
            case MessageAdded(message=message):
                yield from self._show_added(message)
            case MessageChanged(message=message):
                yield from self._show_ended(message)
            case TodosWritten(todos=todos):
                yield messages.show_todos(todos)
            case SessionRemoved():
                self.is_gone = True
            case SessionChanged(session=session):
                yield from self._show_session(session)
            case Noticed(notice=notice):
                yield from self._show_notice(notice)
            case MessagesRemoved(message_ids=removed):
                yield from self._show_removed(len(removed))
            case InboxChanged() | StatusReported():
                return
            case _:
                assert_never(change)

    def _show_part(self, change: TextAppended | PartAdded | PartChanged) -> Iterator[Update]:
        match change:
            case TextAppended(message_id=id, kind=kind, text=text):
                if chunk := _CHUNKS.get(kind):
                    yield chunk(TextBlock(text), id)
            case PartAdded(message_id=id, part=part):
                yield from messages.show_part(id, part, self.directory)
            case PartChanged(message_id=id):
                yield from self._show_change(id, change)

    def _show_change(self, id: MessageID, change: PartChanged) -> Iterator[Update]:
        part = change.part
        if isinstance(part, ToolPart) and isinstance(part.state, PendingState):
            # Its input is complete, and comes with the call.
            return
        if isinstance(part, ToolPart):
            yield tool_calls.change(id, part, self.directory)
        elif change.is_rewritten:
            # What was said before stays on the screen: a chunk cannot take it back.
            yield from messages.show_part(id, part, self.directory)

    def _show_added(self, message: SessionMessage) -> Iterator[Update]:
        match message:
            case UserMessage(id=id) if id in self._own:
                self._own.discard(id)
            case ShellMessage() | AssistantMessage():
                # Shown when it has ended, or by its parts.
                return
            case CompactionMessage() if self._features.compaction:
                text = TextBlock(message.summary)
                yield CompactionUpdate(self._compaction_id, "completed", (text,))
            case _:
                yield from messages.show_message(message, self.directory)

    def _show_ended(self, message: SessionMessage) -> Iterator[Update]:
        if isinstance(message, ShellMessage):
            yield from messages.show_message(message, self.directory)
        if isinstance(message, AssistantMessage):
            self.answered.set()
            is_failure = message.error is not UNSET and not is_interrupt(message)
            if message.error is not UNSET and is_failure and not self.prompts:
                yield messages.failure(message.id, message.error.message)

    def _show_removed(self, count: int) -> Iterator[Update]:
        if count and self._features.notices:
            text = f"{count} messages were taken back by a revert"
            yield Notice("info", text, "Load the Session again to see it without them.")

    def _show_notice(
        self, notice: Retried | CompactionStarted | CompactionReported
    ) -> Iterator[Update]:
        match notice:
            case Retried():
                if self._features.notices:
                    yield Notice("warning", "The model is asked again", notice.error.message)
            case CompactionStarted():
                self._compactions += 1
                if self._features.compaction:
                    yield CompactionUpdate(self._compaction_id, "in_progress")
                elif self._features.notices:
                    yield Notice("info", "Older messages are being summarised")
            case CompactionReported():
                return

    def _show_session(self, session: SessionInfo) -> Iterator[Update]:
        before, self._shown = self._shown, session
        if before.title != session.title:
            yield InfoUpdate(session.title, iso_time(session.time.updated))
        if (before.agent, before.model) != (session.agent, session.model):
            self.chosen.set()

    @property
    def _compaction_id(self) -> str:
        return f"compaction-{self._compactions}"
