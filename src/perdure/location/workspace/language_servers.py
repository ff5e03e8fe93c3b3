"""The language servers of a Location: which of them runs, and whether one may be started again.

A server is started by the first edit of a file that it is for, and shared by all Sessions of the
Location. One that ends by itself is started again, a few times. What is configured comes with each
question, so a change of the configuration ends what ran under the old one. Talking with a server is
not done here (location.workspace.language_server), and nothing of that is loaded before one is
needed.

Invariant: a question is answered within its time, whatever servers do, and never fails.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from perdure.core import limits
from perdure.core.settings.edit_programs import EditProgram
from perdure.ports import Filesystem, PipedProcesses
from perdure.ports.tasks import StartTask
from perdure.schema.value import Confidential, State
from perdure.tools.files.path_access import Target

if TYPE_CHECKING:
    from perdure.location.workspace.language_server import LanguageServer, ServerTimeouts


class LanguageServers:
    """Implements tools.files.post_edit.Diagnoser. `patience` bounds the wait for a server."""

    def __init__(
        self,
        directory: str,
        *,
        processes: PipedProcesses,
        start: StartTask,
        patience: "ServerTimeouts | None" = None,
    ) -> None:
        self._directory = directory
        self._processes = processes
        self._start = start
        self._patience = patience
        self._slots: dict[str, _Slot] = {}
        self._closed = False

    async def complaints(
        self,
        program: EditProgram,
        target: Target,
        files: Filesystem,
        environment: Mapping[str, str],
    ) -> tuple[str, ...]:
        """What the server `program` has against a file, a line each."""
        text = await _text(files, target)
        if text is None:
            return ()
        slot = self._slot(_Spec(program=program, environment=environment))
        server = self._running(slot)
        errors = () if server is None else await server.errors_in(target.path, text)
        return (*(error.told(target.resource) for error in errors), *slot.bad_news())

    def close(self) -> None:
        """End every server, at once; none is started any more."""
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

    def _running(self, slot: "_Slot") -> "LanguageServer | None":
        """The server, started if need be; None when it may not be."""
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
        slot.server = self._started(slot.spec)
        return slot.server

    def _started(self, spec: "_Spec") -> "LanguageServer":
        module = import_module("perdure.location.workspace.language_server")
        server: LanguageServer = module.LanguageServer(
            spec.program,
            directory=self._directory,
            environment=spec.environment,
            patience=self._patience or module.ServerTimeouts(),
        )
        self._start(server.run(self._processes))
        return server


class _Spec(Confidential, kw_only=True):
    """What a server was started as; another one is started when it changes."""

    program: EditProgram
    environment: Mapping[str, str]


class _Slot(State):
    """The place of one configured server."""

    spec: _Spec
    server: "LanguageServer | None" = None
    failures: int = 0
    failure: str | None = None
    """Of a server that was replaced since."""
    told: bool = False

    @property
    def runs(self) -> bool:
        return self.server is not None and not self.server.over

    def bad_news(self) -> tuple[str, ...]:
        """That the server failed, once: it is of no use to hear it with every edit."""
        failure = self.failure if self.server is None else self.server.failure or self.failure
        if self.told or failure is None:
            return ()
        self.told = True
        return (f"The language server {self.spec.program.name} {failure}.",)

    def kill(self) -> None:
        if self.server is not None:
            self.server.kill()


async def _text(files: Filesystem, target: Target) -> str | None:
    """The file as it is now; None when it is gone, too large or not text."""
    most = limits.LSP_FILE_BYTES_MAX
    try:
        data = await files.read(target.path, bytes_max=most + 1)
        return data.decode() if len(data) <= most else None
    except (OSError, UnicodeDecodeError):
        return None
