"""One language server: a program that gets files after each edit and reports diagnostics.

It is started, initialized, kept while it is used, asked to shut down, and ended. Files are sent
whole. Diagnostics count if they are for the sent text: their version says so, or they have no
version and no more follow for a while. location.workspace.language_servers chooses and restarts
servers.

Invariant: when `run` returns, for whatever reason, the program has ended and no caller waits.
"""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from msgspec import field

from perdure.core import limits
from perdure.core.files.paths import printable
from perdure.core.language_server import diagnostic
from perdure.core.language_server import message as lsp_message
from perdure.core.language_server.diagnostic import Diagnostic, Published
from perdure.core.language_server.message import (
    Framer,
    LspFramingError,
    Message,
    Notification,
    Response,
    ServerRequest,
)
from perdure.core.language_server.symbol import Symbol, parse_symbols
from perdure.core.settings.edit_programs import EditProgram
from perdure.host.process.rate_meter import RateMeter
from perdure.ports import PipedProcess, PipedProcesses
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import State, Value

logger = logging.getLogger(__name__)

_CAPABILITIES: Final[JsonObject] = {
    "workspace": {"configuration": True, "workspaceFolders": True, "symbol": {}},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
    },
}


class ServerTimeouts(Value, kw_only=True):
    """How long a server may take, in seconds."""

    answer: float = limits.LSP_ANSWER_SECONDS_MAX
    settle: float = limits.LSP_SETTLE_SECONDS
    start: float = limits.LSP_START_SECONDS_MAX
    stop: float = limits.LSP_STOP_SECONDS_MAX
    idle: float = limits.LSP_IDLE_SECONDS_MAX


class LanguageServer:
    def __init__(
        self,
        program: EditProgram,
        *,
        directory: str,
        environment: Mapping[str, str],
        timeouts: ServerTimeouts,
    ) -> None:
        self.program = program
        self.failure: str | None = None
        """Why it ended, if that was not requested."""
        self.over = False
        self._directory = directory
        self._environment = environment
        self._timeouts = timeouts
        self._process: PipedProcess | None = None
        self._framer = Framer()
        self._received = RateMeter(limits.LSP_HEARD_BYTES_MAX)
        self._answers: dict[int, asyncio.Future[Response]] = {}
        self._last_request = 0
        self._silences = 0
        """The number of consecutive requests without diagnostics."""
        self._ready = asyncio.Event()
        self._used = asyncio.Event()
        self._documents: OrderedDict[str, _Document] = OrderedDict()

    async def run(self, processes: PipedProcesses) -> None:
        """Run the server until it is idle for a while, ends by itself, or this is cancelled."""
        try:
            await self._initialize(processes)
            await self._wait_until_idle()
            await self._shut_down()
        finally:
            self.kill()
            if self._process is not None:
                await self._process.gone()

    async def diagnose(self, path: str, text: str) -> tuple[Diagnostic, ...]:
        """The errors of a file with this text; empty if none arrive in time."""
        self._used.set()
        document: _Document | None = None
        try:
            async with asyncio.timeout(self._answer_seconds):
                await self._ready.wait()
                document = self._send_document(path, text)
                await self._wait_for_diagnostics(document)
        except TimeoutError:
            if document is None or not document.answered:
                self._silences += 1
        return () if document is None else document.errors

    async def find_symbols(self, query: str) -> tuple[Symbol, ...]:
        """The symbols of the project that fit; the caller bounds the wait."""
        self._used.set()
        await self._ready.wait()
        answer = await self._request("workspace/symbol", {"query": query})
        return () if answer is None or answer.failed else parse_symbols(answer.result)

    def kill(self) -> None:
        """End the program at once."""
        if self._process is not None:
            self._process.kill()
        self._on_end()

    # ---- life cycle -----------------------------------------------------------------------------

    async def _initialize(self, processes: PipedProcesses) -> None:
        answer: Response | None = None
        try:
            async with asyncio.timeout(self._timeouts.start):
                self._process = await processes.start(
                    self.program.command,
                    directory=self._directory,
                    environment=self._environment,
                    heard=self._receive,
                    ended=self._on_end,
                )
                # `kill` may have been called while it started.
                if not self.over:
                    answer = await self._request("initialize", self._initialize_params())
        except TimeoutError:
            self._fail("took too long to start")
        except (OSError, ValueError) as error:
            self._fail(f"did not start: {error}")
        if answer is not None and answer.failed:
            self._fail("refused to start")
        elif answer is not None:
            self._send(lsp_message.notification("initialized", {}))
            self._ready.set()

    async def _wait_until_idle(self) -> None:
        try:
            while not self.over:
                self._used.clear()
                async with asyncio.timeout(self._timeouts.idle):
                    await self._used.wait()
        except TimeoutError:
            return

    async def _shut_down(self) -> None:
        """Ask the server to shut down. `run` kills it in any case."""
        if self.over:
            return
        # From here on no edit may start to use it.
        self.over = True
        try:
            async with asyncio.timeout(self._timeouts.stop):
                await self._request("shutdown", None)
                self._send(lsp_message.notification("exit", None))
                while self._process is not None and not self._process.over:
                    self._used.clear()
                    await self._used.wait()
        except TimeoutError:
            logger.info("language server %s did not shut down and was killed", self.program.name)

    def _on_end(self) -> None:
        """Release all waiters, because the program ended."""
        if not self.over:
            self.failure = self.failure or "ended by itself"
            self.over = True
        self._ready.set()
        self._used.set()
        for answer in self._answers.values():
            answer.cancel()
        for document in self._documents.values():
            document.changed.set()

    def _fail(self, why: str) -> None:
        if not self.over:
            logger.warning("language server %s %s", self.program.name, why)
            self.failure = why
        self.kill()

    # ---- sending --------------------------------------------------------------------------------

    def _initialize_params(self) -> JsonObject:
        return {
            # A server ends when that process does, or if it cannot find it.
            "processId": None if self.program.contained else os.getpid(),
            "clientInfo": {"name": "perdure"},
            "rootUri": self._folder["uri"],
            "workspaceFolders": [self._folder],
            "initializationOptions": self.program.initialization,
            "capabilities": _CAPABILITIES,
        }

    @property
    def _folder(self) -> JsonObject:
        name = self._directory.rpartition("/")[2] or "/"
        return {"uri": diagnostic.uri_of(self._directory), "name": printable(name)}

    async def _request(self, method: str, params: JsonValue) -> Response | None:
        """Send a request and wait for the answer; None when the server ended."""
        if self._process is None or self._process.over:
            return None
        self._last_request += 1
        number = self._last_request
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(lsp_message.request(number, method, params))
            await asyncio.wait([answer])
            return None if answer.cancelled() else answer.result()
        finally:
            del self._answers[number]

    def _send_document(self, path: str, text: str) -> "_Document":
        """Send the text of a file; diagnostics of older texts no longer count."""
        document = self._documents.pop(path, None)
        uri = diagnostic.uri_of(path)
        if document is None:
            document = _Document()
            item = {"uri": uri, "languageId": diagnostic.language_of(path)}
            opened = {**item, "version": document.version, "text": text}
            self._send(lsp_message.notification("textDocument/didOpen", {"textDocument": opened}))
        else:
            document.begin_version()
            changed = {
                "textDocument": {"uri": uri, "version": document.version},
                "contentChanges": [{"text": text}],
            }
            self._send(lsp_message.notification("textDocument/didChange", changed))
        # The file is on disk already; some servers only check saved files.
        saved = {"textDocument": {"uri": uri}}
        self._send(lsp_message.notification("textDocument/didSave", saved))
        self._documents[path] = document
        self._close_oldest()
        return document

    def _close_oldest(self) -> None:
        while len(self._documents) > limits.LSP_DOCUMENTS_OPEN_MAX:
            path, document = self._documents.popitem(last=False)
            document.changed.set()
            closed = {"textDocument": {"uri": diagnostic.uri_of(path)}}
            self._send(lsp_message.notification("textDocument/didClose", closed))

    def _send(self, data: bytes) -> None:
        if self._process is None or self._process.over:
            return
        if not self._process.send(data):
            self._fail("does not read what it is told")

    # ---- receiving ------------------------------------------------------------------------------

    def _receive(self, data: bytes) -> None:
        if self._received.exceeds_with(len(data)):
            self._fail("says too much")
            return
        try:
            bodies = self._framer.feed(data)
        except LspFramingError as error:
            self._fail(f"cannot be understood: {error}")
            return
        for body in bodies:
            self._handle(lsp_message.read(body))

    def _handle(self, message: Message | None) -> None:
        match message:
            case Response(id=number):
                waiting = self._answers.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            case ServerRequest():
                self._send(lsp_message.reply(message, folder=self._folder))
            case Notification(method="textDocument/publishDiagnostics", params=params):
                found = diagnostic.parse_published(params)
                document = None if found is None else self._documents.get(found.path)
                if found is not None and document is not None:
                    self._silences = 0
                    document.update(found)
            case Notification() | None:
                return

    @property
    def _answer_seconds(self) -> float:
        """How long an edit waits; 0 after several requests without diagnostics."""
        return self._timeouts.answer if self._silences < limits.LSP_SILENCES_MAX else 0

    async def _wait_for_diagnostics(self, document: "_Document") -> None:
        """Wait for the diagnostics of the sent text, or for the end of the server."""
        while not self.over and not document.certain:
            document.changed.clear()
            try:
                async with asyncio.timeout(self._timeouts.settle if document.answered else None):
                    await document.changed.wait()
            except TimeoutError:
                return


class _Document(State):
    """A file that was sent to the server, and its diagnostics."""

    version: int = 1
    answered: bool = False
    certain: bool = False
    """Whether the diagnostics name the version of the sent text."""
    errors: tuple[Diagnostic, ...] = ()
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def begin_version(self) -> None:
        self.version += 1
        self.answered = self.certain = False
        self.errors = ()

    def update(self, published: Published) -> None:
        if published.version is not None and published.version < self.version:
            return
        self.answered = True
        self.certain = published.version is not None
        self.errors = published.errors
        self.changed.set()
