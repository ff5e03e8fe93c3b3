"""Runs commands of the user in Sessions, for clients. A retry with the same id runs nothing again.

Invariant: a command is recorded under its message id before it starts, so that it starts once.
"""

from functools import partial

from perdure.core import limits
from perdure.runtime.coordination.coordinator import DrainInterruptedError
from perdure.runtime.session.sessions import Sessions, SessionServices
from perdure.schema.errors import (
    InvalidRequestError,
    PromptConflictError,
    ServiceUnavailableError,
)
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.message import ShellMessage
from perdure.store.tables import message_table


class SessionShells:
    def __init__(self, services: SessionServices, sessions: Sessions) -> None:
        self._sessions = sessions
        self._store = services.store
        self._coordinator = services.coordinator
        self._runs = services.activity
        self._ids = services.ids
        self._engine = services.engine

    async def run(
        self, session_id: SessionID, command: str, *, id: MessageID | None = None
    ) -> ShellMessage:
        """Run a command in the Session's directory, and return its message when it has ended.

        A staged revert is committed first, as by a prompt. Raises SessionBusyError while the
        Session runs, PromptConflictError for an id that names something else, and
        InvalidRequestError for what no shell takes.
        """
        _check(command)
        await self._sessions.require_location(session_id)
        message_id = id or self._ids.message()
        if id is not None and await self._is_recorded(session_id, id, command):
            await self._runs.wait_until_idle(session_id)
            return await self._load(session_id, id)
        await self._store.database.read(lambda tx: self._runs.check_idle(tx, session_id))
        await self._sessions.revert.commit(session_id)
        work = partial(self._engine().shell_commands.run, message_id=message_id, command=command)
        try:
            refused = await self._coordinator.run_exclusively(session_id, work)
        except DrainInterruptedError:
            # Its message says so, if it had started.
            return await self._load(session_id, message_id)
        if refused is not None:
            raise refused
        return await self._load(session_id, message_id)

    async def _is_recorded(self, session_id: SessionID, id: MessageID, command: str) -> bool:
        """Whether this command was recorded under this id."""
        row = await self._store.database.read(lambda tx: message_table.get(tx, session_id, id))
        if row is None:
            if await self._store.database.read(lambda tx: message_table.exists(tx, id)):
                raise PromptConflictError(id)
            return False
        message = row.message()
        if not isinstance(message, ShellMessage) or message.command != command:
            raise PromptConflictError(id)
        return True

    async def _load(self, session_id: SessionID, id: MessageID) -> ShellMessage:
        row = await self._store.database.read(lambda tx: message_table.get(tx, session_id, id))
        message = None if row is None else row.message()
        if not isinstance(message, ShellMessage):
            raise ServiceUnavailableError(
                "Interrupted before the command was started", service="session.shell"
            )
        return message


def _check(command: str) -> None:
    if not command.strip():
        raise InvalidRequestError("The command is empty", field="command")
    if "\0" in command:
        raise InvalidRequestError("A command cannot contain a NUL character", field="command")
    try:
        size = len(command.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequestError("The command is not valid Unicode", field="command") from error
    if size > limits.BASH_COMMAND_BYTES_MAX:
        most = limits.BASH_COMMAND_BYTES_MAX
        raise InvalidRequestError(f"The command is longer than {most} bytes", field="command")
