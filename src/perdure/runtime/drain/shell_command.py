"""Runs a command of the user in a Session: recorded before it starts, and ended exactly once.

The user types it, so no permission is asked for and no sandbox holds it, as in a terminal. The
model is told the command and its output, so variables that hold secrets are not in its environment.
Files that it changes are recorded like those of a step. Nothing else runs for the Session
meanwhile; see runtime.turn.ownership, which also ends the command of a process that died.
"""

import asyncio

from perdure.core import limits
from perdure.core.session import recovery
from perdure.location.location import Location
from perdure.ports import ProcessResult
from perdure.ports.file_journal import Journal
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import tool_runs
from perdure.runtime.turn.ownership import SessionOwnership
from perdure.runtime.turn.services import RunServices
from perdure.schema.errors import SessionBusyError
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session.event import ShellEnded, ShellStarted
from perdure.schema.session.session import SessionInfo
from perdure.store.processes.lease_table import LeaseHeldError
from perdure.store.tables import file_change_table
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.shell.command_output import CommandOutput


class ShellCommands:
    def __init__(self, services: RunServices, ownership: SessionOwnership) -> None:
        self._services = services
        self._store = services.store
        self._ownership = ownership

    async def run(
        self, session_id: SessionID, *, message_id: MessageID, command: str
    ) -> SessionBusyError | None:
        """Run the command and record it as the message `message_id`; a refusal is returned.

        Raises CancelledError when interrupted; the message then says so.
        """
        try:
            async with self._ownership.own(session_id):
                session = await self._store.load_session(session_id)
                async with self._services.locations.hold(session.location) as location:
                    await self._run(session, location, message_id, command)
        except LeaseHeldError:
            return SessionBusyError(session_id)
        return None

    async def _run(
        self, session: SessionInfo, location: Location, message_id: MessageID, command: str
    ) -> None:
        started = ShellStarted(
            timestamp=self._services.clock.now_millis(),
            session_id=session.id,
            message_id=message_id,
            call_id=ToolCallID(self._services.ids.named("call")),
            command=command,
        )
        await self._store.append(session.id, [started], location=session.location, running=True)
        environment = location.files.environment
        spool = None if environment.outputs is None else environment.outputs.spool()
        output = CommandOutput(spool, lambda text: None)
        try:
            journal = await self._journal(session, location, message_id)
            directory = session.location.directory
            text = await _execute(
                environment, command, directory=directory, output=output, journal=journal
            )
        except asyncio.CancelledError:
            cause = recovery.SHELL_STOPPED if self._services.closing() else recovery.SHELL_ENDED
            text = _join(await _show(output, environment), cause)
            await shielded(self._end(session, started, text))
            raise
        finally:
            output.close()
        await shielded(self._end(session, started, text))

    async def _journal(
        self, session: SessionInfo, location: Location, message_id: MessageID
    ) -> Journal:
        newest = await self._store.database.read(
            lambda tx: file_change_table.latest_snapshot(tx, session.id)
        )
        return tool_runs.journal(self._services, location, session.id, message_id, start=newest)

    async def _end(self, session: SessionInfo, started: ShellStarted, output: str) -> None:
        ended = ShellEnded(
            timestamp=self._services.clock.now_millis(),
            session_id=session.id,
            call_id=started.call_id,
            output=output,
        )
        await self._store.append(session.id, [ended], location=session.location, running=True)


async def _execute(
    environment: ToolEnvironment,
    command: str,
    *,
    directory: str,
    output: CommandOutput,
    journal: Journal,
) -> str:
    """The output of the command, and how it ended if it did not succeed."""
    try:
        async with journal.watching():
            result = await environment.processes.run_into(
                output,
                (environment.shell, "-c", command),
                directory=directory,
                environment=environment.variables,
                timeout_seconds=limits.SHELL_SECONDS_MAX,
            )
    except OSError as error:
        return f"Unable to execute command: {reason(error)}"
    return _join(await _show(output, environment), _ending(result))


async def _show(output: CommandOutput, environment: ToolEnvironment) -> str:
    if output.is_binary:
        return await output.describe_binary()
    return await output.fit(environment.output_limits)


def _ending(result: ProcessResult) -> str:
    if result.timed_out:
        return f"The command was ended after {limits.SHELL_SECONDS_MAX} seconds."
    code = result.exit_code or 0
    return "" if code == 0 else f"Command exited with code {code if code > 0 else 128 - code}."


def _join(output: str, ending: str) -> str:
    if not ending:
        return output
    separator = "" if not output or output.endswith("\n") else "\n"
    return f"{output}{separator}{ending}"
