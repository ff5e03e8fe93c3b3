"""Changes a Session as a whole: title, archive, permission rules, messages that are left out.

Each change is one event. A title that the user chose is never replaced by a generated one; an
archived Session is listed as archived and otherwise works as before. An exclusion takes effect at
the next boundary. Nothing here waits for a run.
"""

from msgspec import UNSET, UnsetType

from perdure.core.session import omission
from perdure.ports import Clock, Transaction
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.run_request import request_run
from perdure.runtime.session import rules
from perdure.runtime.session.own_fields import require_title
from perdure.schema.approval.permission import SessionRules
from perdure.schema.errors import InvalidRequestError, MessageNotFoundError
from perdure.schema.ids import MessageID, Seq, SessionID, ToolCallID
from perdure.schema.session.event import (
    Archived,
    MessageExcluded,
    MessageRestored,
    Renamed,
    Unarchived,
)
from perdure.schema.session.message import (
    AgentSwitchedMessage,
    ModelSwitchedMessage,
    SessionMessage,
    SystemMessage,
)
from perdure.schema.session.session import SessionInfo
from perdure.store.log.event_store import EventStore
from perdure.store.tables import message_table
from perdure.store.tables.message_table import MessageRow


class SessionChanges:
    def __init__(self, store: EventStore, coordinator: RunCoordinator, clock: Clock) -> None:
        self._store = store
        self._coordinator = coordinator
        self._clock = clock

    async def rename(self, session_id: SessionID, asked: str) -> SessionInfo:
        """Set the title: one line, without control characters. Return the changed Session."""
        chosen = require_title(asked)
        session = await self._store.load_session(session_id)
        if session.title != chosen:
            now = self._clock.now_millis()
            event = Renamed(timestamp=now, session_id=session_id, title=chosen)
            await self._store.append(session_id, [event], location=session.location)
        return await self._store.load_session(session_id)

    async def set_rules(self, session_id: SessionID, given: SessionRules) -> SessionInfo:
        """Replace the permission rules, also of the Sessions below. Return the changed Session."""
        await rules.replace_rules(self._store, session_id, given, now=self._clock.now_millis())
        return await self._store.load_session(session_id)

    async def archive(self, session_id: SessionID) -> None:
        """Archive the Session. Archiving it again keeps the first time."""
        session = await self._store.load_session(session_id)
        if not session.time.archived:
            event = Archived(timestamp=self._clock.now_millis(), session_id=session_id)
            await self._store.append(session_id, [event], location=session.location)

    async def unarchive(self, session_id: SessionID) -> None:
        session = await self._store.load_session(session_id)
        if session.time.archived:
            event = Unarchived(timestamp=self._clock.now_millis(), session_id=session_id)
            await self._store.append(session_id, [event], location=session.location)

    async def exclude(
        self,
        session_id: SessionID,
        message_id: MessageID,
        *,
        excluded: bool,
        call_id: ToolCallID | UnsetType = UNSET,
    ) -> bytes:
        """Exclude a message, or only its result of a call, or restore it; return its JSON.

        Repeating it changes nothing. Raises MessageNotFoundError, and InvalidRequestError for what
        cannot be excluded.
        """
        session = await self._store.load_session(session_id)
        message = await self._store.database.read(
            lambda tx: _load_message(tx, session_id, message_id)
        )
        _check_excludable(message.message(), call_id)
        if omission.is_excluded(message.message(), call_id) == excluded:
            return message.data
        event = (MessageExcluded if excluded else MessageRestored)(
            timestamp=self._clock.now_millis(),
            session_id=session_id,
            message_id=message_id,
            call_id=call_id,
        )
        changed: list[bytes] = []

        async def within(tx: Transaction, seq: Seq) -> None:
            # A revert may have removed the message meanwhile; then there is no event either.
            changed.append((await _load_message(tx, session_id, message_id)).data)

        await self._store.append(session_id, [event], location=session.location, within=within)
        return changed[-1]

    async def resume(self, session_id: SessionID) -> None:
        """Run pending prompts, here or in the process that holds the lease. Never waits for it."""
        await self._store.load_session(session_id)

        async def ask(tx: Transaction) -> None:
            await request_run(tx, self._store.leases, session_id)

        await self._store.database.write(ask)
        self._coordinator.wake(session_id)


async def _load_message(
    tx: Transaction, session_id: SessionID, message_id: MessageID
) -> MessageRow:
    row = await message_table.get(tx, session_id, message_id)
    if row is None:
        raise MessageNotFoundError(session_id, message_id)
    return row


def _check_excludable(message: SessionMessage, call_id: ToolCallID | UnsetType) -> None:
    if call_id is not UNSET:
        if not any(part.id == call_id for part in omission.calls_of(message)):
            raise InvalidRequestError(
                f"Message {message.id} has no tool call {call_id}", kind="Payload", field="callID"
            )
    elif isinstance(message, SystemMessage):
        raise InvalidRequestError(
            f"Message {message.id} tells the model of its context and cannot be excluded;"
            " change the Context Source instead, such as the instruction file",
            kind="Params",
            field="messageID",
        )
    elif isinstance(message, AgentSwitchedMessage | ModelSwitchedMessage):
        raise InvalidRequestError(
            f"Message {message.id} is not sent to the model, so it cannot be excluded",
            kind="Params",
            field="messageID",
        )
