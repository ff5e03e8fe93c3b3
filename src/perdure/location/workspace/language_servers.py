"""The language servers of a Location: starts, restarts and ends them.

A server is started by the first edit of a file that it is for, and shared by all Sessions of the
Location. One that ends by itself is restarted a few times. The configuration comes with each
request, so a changed configuration ends the old server. location.workspace.language_server talks
to a server and is imported when one is first needed.

Invariant: a request is answered within its timeout, whatever servers do, and never fails.
"""

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from perdure.core import limits
from perdure.core.settings.edit_programs import EditProgram
from perdure.ports import Filesystem, PipedProcesses
from perdure.ports.tasks import StartTask
from perdure.schema.value import Confidential, State, Value
from perdure.tools.files.path_access import Target

if TYPE_CHECKING:
    from perdure.core.language_server.symbol import Symbol
    from perdure.location.workspace.language_server import LanguageServer, ServerTimeouts


class LanguageServers:
    """Implements tools.files.post_edit.Diagnoser. `timeouts` bound the wait for a server."""

    def __init__(
        self,
        directory: str,
        *,
        processes: PipedProcesses,
        start: StartTask,
        timeouts: "ServerTimeouts | None" = None,
    ) -> None:
        self._directory = directory
        self._processes = processes
        self._start = start
        self._timeouts = timeouts
        self._slots: dict[str, _Slot] = {}
        self._closed = False

    async def diagnose(
        self,
        program: EditProgram,
        target: Target,
        files: Filesystem,
        environment: Mapping[str, str],
    ) -> tuple[str, ...]:
        """The errors that the server `program` reports for a file, a line each."""
        text = await _text(files, target)
        if text is None:
            return ()
        slot = self._slot(_Spec(program=program, environment=environment))
        server = self._get_server(slot)
        errors = () if server is None else await server.diagnose(target.path, text)
        return (*(error.render(target.resource) for error in errors), *slot.take_failure_note())

    async def find_symbols(self, query: str) -> "tuple[Symbol, ...]":
        """What the servers that run name for `query`, of those that answer in time."""
        running = [slot.server for slot in self._slots.values() if slot.server and slot.runs]
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(_find_symbols(server, query)) for server in running]
        return tuple(symbol for each in asked for symbol in each.result())

    def list_started(self) -> "tuple[ServerState, ...]":
        """The servers that were started, and whether each still runs."""
        return tuple(
            ServerState(name=name, runs=slot.runs)
            for name, slot in sorted(self._slots.items())
            if slot.server is not None or slot.failures
        )

    def close(self) -> None:
        """End every server at once; no other is started."""
        self._closed = True
        for slot in self._slots.values():
            slot.kill()

    def _slot(self, spec: "_Spec") -> "_Slot":
        slot = self._slots.get(spec.program.name)
        if slot is None or slot.spec != spec:
            if slot is not None:
                slot.kill()
            slot = self._slots[spec.program.name] = _Slot(spec)
        return slot

    def _get_server(self, slot: "_Slot") -> "LanguageServer | None":
        """The running server, started if need be; None when it may not be started."""
        if slot.server is not None and not slot.server.over:
            return slot.server
        if slot.server is not None and slot.server.failure is not None:
            slot.failures += 1
            slot.failure = slot.server.failure
        running = sum(other.runs for other in self._slots.values())
        if (
            self._closed
            or slot.failures > limits.LSP_RESTARTS_MAX
            or running >= limits.LSP_RUNNING_MAX
        ):
            slot.server = None
            return None
        slot.server = self._start_server(slot.spec)
        return slot.server

    def _start_server(self, spec: "_Spec") -> "LanguageServer":
        module = import_module("perdure.location.workspace.language_server")
        server: LanguageServer = module.LanguageServer(
            spec.program,
            directory=self._directory,
            environment=spec.environment,
            timeouts=self._timeouts or module.ServerTimeouts(),
        )
        self._start(server.run(self._processes))
        return server


class ServerState(Value, kw_only=True):
    name: str
    runs: bool


class _Spec(Confidential, kw_only=True):
    """The command and environment of a server; when they change, another one is started."""

    program: EditProgram
    environment: Mapping[str, str]


class _Slot(State):
    """One configured server, running or not."""

    spec: _Spec
    server: "LanguageServer | None" = None
    failures: int = 0
    failure: str | None = None
    """The failure of a server that was replaced since."""
    reported: bool = False

    @property
    def runs(self) -> bool:
        return self.server is not None and not self.server.over

    def take_failure_note(self) -> tuple[str, ...]:
        """A note that the server failed, returned only once."""
        failure = self.failure if self.server is None else self.server.failure or self.failure
        if self.reported or failure is None:
            return ()
        self.reported = True
        return (f"The language server {self.spec.program.name} {failure}.",)

    def kill(self) -> None:
        if self.server is not None:
            self.server.kill()


async def _find_symbols(server: "LanguageServer", query: str) -> "tuple[Symbol, ...]":
    """The symbols that a server names; none if it takes too long."""
    try:
        async with asyncio.timeout(limits.LSP_SYMBOLS_SECONDS_MAX):
            return await server.find_symbols(query)
    except TimeoutError:
        return ()


async def _text(files: Filesystem, target: Target) -> str | None:
    """The text of the file; None when it is missing, too large or not text."""
    most = limits.LSP_FILE_BYTES_MAX
    try:
        data = await files.read(target.path, bytes_max=most + 1)
        return data.decode() if len(data) <= most else None
    except (OSError, UnicodeDecodeError):
        return None
