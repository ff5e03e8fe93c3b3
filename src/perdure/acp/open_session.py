"""A Session that a client has open: what follows it, asks for it and counts what it costs."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from msgspec import UNSET

from perdure.acp.client_features import ClientFeatures
from perdure.acp.dialect import Dialect
from perdure.acp.schema.updates import (
    AvailableCommand,
    CommandHint,
    CommandsUpdate,
    Cost,
    ModeUpdate,
    OptionsUpdate,
    StateUpdate,
    Update,
    UsageUpdate,
)
from perdure.acp.session_feed import SessionFeed
from perdure.acp.session_requests import SessionRequests
from perdure.acp.show import messages as shown
from perdure.acp.show.choices import Choices
from perdure.acp.wire.rpc import Connection
from perdure.client.client import Client
from perdure.client.conversation.event_stream import patiently
from perdure.client.conversation.tasks import running
from perdure.client.errors import ClientError
from perdure.client.typed_events import LiveEvent
from perdure.core.transcript.transcript import Transcript
from perdure.schema.errors import DeclaredError
from perdure.schema.ids import SessionID
from perdure.schema.session.message import AssistantMessage, SessionMessage
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.snapshot import SessionSnapshot
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

_UPDATE: Final = "session/update"
_PAGE_ITEMS: Final = 100
_SNAPSHOT_ITEMS: Final = 50
COMPACT: Final = AvailableCommand(
    "compact",
    "Summarise older messages to free context",
    CommandHint("what the summary must keep"),
)


class Speaker(Value):
    """The way to a client."""

    connection: Connection
    dialect: Dialect
    features: ClientFeatures


class OpenSession:
    def __init__(
        self, client: Client, speaker: Speaker, snapshot: SessionSnapshot, choices: Choices
    ) -> None:
        self._client = client
        self._speaker = speaker
        self._stack = AsyncExitStack()
        self.choices = choices
        self.order = asyncio.Lock()
        """Held while a prompt is admitted or the work is cancelled: in the order of arrival."""
        self.cancels = 0
        self.used = 0
        """When it was last used, as a count of uses."""
        self.feed = SessionFeed(
            client,
            Transcript(snapshot),
            self.tell,
            features=speaker.features,
            echoes_prompts=speaker.dialect.echoes_prompts,
        )
        self.requests = SessionRequests(
            client,
            speaker.connection,
            speaker.dialect,
            self.id,
            has_forms=speaker.features.forms,
            waits=self._wait_for_user,
        )
        self.requests.directory = self.feed.directory

    @property
    def id(self) -> SessionID:
        return self.feed.session.id

    @property
    def works(self) -> bool:
        return self.feed.prompts > 0 or self.feed.is_answering

    async def begin(self) -> None:
        """Follow the Session from its snapshot on, until it is closed."""
        await self._stack.enter_async_context(running(self._run()))

    async def aclose(self) -> None:
        await self._stack.aclose()

    async def tell(self, update: Update) -> None:
        params = self._speaker.dialect.update(self.id, update)
        if params is not None:
            await self._speaker.connection.notify(_UPDATE, params)

    def take(self, event: LiveEvent) -> None:
        self.feed.take(event)

    def look(self) -> None:
        self.requests.look(works=self.works)

    # ---- the whole conversation -----------------------------------------------------------------

    async def replay(self, snapshot: SessionSnapshot) -> None:
        """Tell all messages of the Session, tools and todos too, up to the snapshot."""
        first = snapshot.messages[0].id if snapshot.messages else None
        directory = self.feed.directory
        if snapshot.cursor.previous is not UNSET:
            async for message in _messages_before(self._client, self.id, first):
                for update in shown.show_message(message, directory):
                    await self.tell(update)
        for message in snapshot.messages:
            for update in shown.show_message(message, directory):
                await self.tell(update)
        todos = await self._client.sessions.todos(self.id)
        if todos:
            await self.tell(shown.show_todos(todos))

    async def tell_commands(self) -> None:
        """What can be typed after a slash."""
        listed = await self._client.commands.list(directory=self.feed.directory)
        commands = [
            AvailableCommand(
                command.name,
                command.description or command.name,
                CommandHint("arguments") if "$" in command.template else None,
            )
            for command in listed
            if command.name != COMPACT.name
        ]
        await self.tell(CommandsUpdate((*commands, COMPACT)))

    async def tell_usage(self) -> None:
        """How much of the context is used, and what the Session and those below it cost."""
        last = next(
            (
                message
                for message in reversed(self.feed.messages)
                if isinstance(message, AssistantMessage) and message.tokens is not UNSET
            ),
            None,
        )
        if last is None or last.tokens is UNSET:
            return
        model = self.choices.find_model(f"{last.model.provider_id}/{last.model.id}")
        size = 0 if model is None else model.limit.context
        tokens = last.tokens
        used = tokens.input + tokens.output + tokens.reasoning
        used += tokens.cache.read + tokens.cache.write
        usage = await self._client.sessions.usage(self.id)
        await self.tell(UsageUpdate(used, max(size, 0), Cost(usage.tree.cost, "USD")))

    async def tell_choices(self, session: SessionInfo) -> None:
        await self.tell(ModeUpdate(self.choices.modes(session).current_mode_id))
        await self.tell(OptionsUpdate(self.choices.options(session)))

    # ---- while it is open -----------------------------------------------------------------------

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(self.requests.run()),
                group.create_task(self._repeat(self.feed.answered, self.tell_usage)),
                group.create_task(self._repeat(self.feed.chosen, self._tell_chosen)),
                group.create_task(self._go_on()),
            ]
            try:
                await self.feed.run()
            finally:
                for task in beside:
                    task.cancel()

    async def _repeat(self, event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work after each time that the event is set; a failure leaves it out."""
        while True:
            await event.wait()
            event.clear()
            self.look()
            try:
                await work()
            except (ClientError, DeclaredError) as error:
                logger.warning("%s: an update was left out: %s", self.id, error)

    async def _tell_chosen(self) -> None:
        await self.tell_choices(self.feed.session)

    async def _go_on(self) -> None:
        """Run what a process that was killed has left; told as it happens."""
        try:
            await patiently(partial(self._client.sessions.wait, self.id))
        except (ClientError, DeclaredError) as error:
            logger.warning("%s: its work cannot be waited for: %s", self.id, error)
        self.look()

    async def _wait_for_user(self, is_waiting: bool) -> None:
        if self._speaker.dialect.tells_state:
            await self.tell(StateUpdate("requires_action" if is_waiting else "running"))


async def load_snapshot(client: Client, session_id: SessionID) -> SessionSnapshot:
    return await client.sessions.snapshot(session_id, limit=_SNAPSHOT_ITEMS)


async def _messages_before(
    client: Client, session_id: SessionID, first: str | None
) -> AsyncGenerator[SessionMessage]:
    page = await client.sessions.messages(session_id, order="asc", limit=_PAGE_ITEMS)
    while True:
        for message in page.items:
            if message.id == first:
                return
            yield message
        if page.next is None:
            return
        page = await client.sessions.messages(session_id, cursor=page.next)
