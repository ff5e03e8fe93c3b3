"""One language server: a program that is shown files as they are now, and says what is wrong.

It is started, introduced, kept for as long as it is used, asked to end, and ended. Files are shown
whole. An answer counts if it is about the text that was shown: the server says so, or says nothing
of versions and then falls silent. Choosing servers, starting them again and bounding the time of an
edit is not done here (location.workspace.language_servers).

Invariant: when `run` is over, for whatever reason, the program is gone and nobody waits for it.
"""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

from msgspec import field

from perdure.core import limits
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
from perdure.core.settings.edit_programs import EditProgram
from perdure.ports import PipedProcess, PipedProcesses
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import State, Value
from perdure.tools.environment import printable

logger = logging.getLogger(__name__)

_CAPABILITIES: Final[JsonObject] = {
    "workspace": {"configuration": True, "workspaceFolders": True},
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
        patience: ServerTimeouts,
    ) -> None:
        self.program = program
        self.failure: str | None = None
        """Why it is over, if that was not our wish."""
        self.over = False
        self._directory = directory
        self._environment = environment
        self._patience = patience
        self._process: PipedProcess | None = None
        self._framer = Framer()
        self._heard = _Meter()
        self._answers: dict[int, asyncio.Future[Response]] = {}
        self._asked = 0
        self._silences = 0
        """How many times in a row somebody waited for nothing."""
        self._ready = asyncio.Event()
        self._used = asyncio.Event()
        self._documents: OrderedDict[str, _Document] = OrderedDict()

    async def run(self, processes: PipedProcesses) -> None:
        """Live: until nobody used it for a while, it ends by itself, or this is cancelled."""
        try:
            await self._introduced(processes)
            await self._until_unused()
            await self._stopped()
        finally:
            self.kill()
            if self._process is not None:
                await self._process.gone()

    async def errors_in(self, path: str, text: str) -> tuple[Diagnostic, ...]:
        """What it has against a file with this text; nothing, if it does not say in time."""
        self._used.set()
        document: _Document | None = None
        try:
            async with asyncio.timeout(self._seconds):
                await self._ready.wait()
                document = self._shown(path, text)
                await self._answered(document)
        except TimeoutError:
            if document is None or not document.answered:
                self._silences += 1
        return () if document is None else document.errors

    def kill(self) -> None:
        """End it, now."""
        if self._process is not None:
            self._process.kill()
        self._ended()

    # ---- its life -------------------------------------------------------------------------------

    async def _introduced(self, processes: PipedProcesses) -> None:
        answer: Response | None = None
        try:
            async with asyncio.timeout(self._patience.start):
                self._process = await processes.start(
                    self.program.command,
                    directory=self._directory,
                    environment=self._environment,
                    heard=self._take,
                    ended=self._ended,
                )
                # It may have been ended before it was there.
                if not self.over:
                    answer = await self._request("initialize", self._introduction())
        except TimeoutError:
            self._fail("took too long to start")
        except (OSError, ValueError) as error:
            self._fail(f"did not start: {error}")
        if answer is not None and answer.failed:
            self._fail("refused to start")
        elif answer is not None:
            self._send(lsp_message.notification("initialized", {}))
            self._ready.set()

    async def _until_unused(self) -> None:
        try:
            while not self.over:
                self._used.clear()
                async with asyncio.timeout(self._patience.idle):
                    await self._used.wait()
        except TimeoutError:
            return

    async def _stopped(self) -> None:
        """Ask it to end. Whether it does or not, it is ended."""
        if self.over:
            return
        # From here on nobody may begin to use it.
        self.over = True
        try:
            async with asyncio.timeout(self._patience.stop):
                await self._request("shutdown", None)
                self._send(lsp_message.notification("exit", None))
                while self._process is not None and not self._process.over:
                    self._used.clear()
                    await self._used.wait()
        except TimeoutError:
            logger.info("language server %s had to be stopped", self.program.name)

    def _ended(self) -> None:
        """It says no more: nobody has to wait for it."""
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

    # ---- what is said ---------------------------------------------------------------------------

    def _introduction(self) -> JsonObject:
        return {
            "processId": os.getpid(),
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
        """Its answer; None when it ended instead."""
        if self._process is None or self._process.over:
            return None
        self._asked += 1
        number = self._asked
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(lsp_message.request(number, method, params))
            await asyncio.wait([answer])
            return None if answer.cancelled() else answer.result()
        finally:
            del self._answers[number]

    def _shown(self, path: str, text: str) -> "_Document":
        """Show it the file; the words about older texts no longer count."""
        document = self._documents.pop(path, None)
        uri = diagnostic.uri_of(path)
        if document is None:
            document = _Document()
            item = {"uri": uri, "languageId": diagnostic.language_of(path)}
            opened = {**item, "version": document.version, "text": text}
            self._send(lsp_message.notification("textDocument/didOpen", {"textDocument": opened}))
        else:
            document.begin()
            changed = {
                "textDocument": {"uri": uri, "version": document.version},
                "contentChanges": [{"text": text}],
            }
            self._send(lsp_message.notification("textDocument/didChange", changed))
        # It lies on the disk already; some servers look only at what was saved.
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

    # ---- what is heard --------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        if self._heard.over_with(len(data)):
            self._fail("says too much")
            return
        try:
            bodies = self._framer.feed(data)
        except LspFramingError as error:
            self._fail(f"cannot be understood: {error}")
            return
        for body in bodies:
            self._understand(lsp_message.read(body))

    def _understand(self, message: Message | None) -> None:
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
                    document.hear(found)
            case Notification() | None:
                return

    @property
    def _seconds(self) -> float:
        """How long an edit waits; no longer for one that never has anything to say."""
        return self._patience.answer if self._silences < limits.LSP_SILENCES_MAX else 0

    async def _answered(self, document: "_Document") -> None:
        """Wait until it has said what it thinks of the text it was shown, or is over."""
        while not self.over and not document.certain:
            document.changed.clear()
            try:
                async with asyncio.timeout(self._patience.settle if document.answered else None):
                    await document.changed.wait()
            except TimeoutError:
                return


class _Document(State):
    """A file that a server was shown, and what it said of it since."""

    version: int = 1
    answered: bool = False
    certain: bool = False
    """Whether the answer says that it is about this very text."""
    errors: tuple[Diagnostic, ...] = ()
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        self.version += 1
        self.answered = self.certain = False
        self.errors = ()

    def hear(self, said: Published) -> None:
        if said.version is not None and said.version < self.version:
            return
        self.answered = True
        self.certain = said.version is not None
        self.errors = said.errors
        self.changed.set()


class _Meter:
    """How much was heard within the current second."""

    def __init__(self) -> None:
        self._second = 0.0
        self._bytes = 0

    def over_with(self, count: int) -> bool:
        """Whether this is more than anybody has to say."""
        now = asyncio.get_running_loop().time()
        if now - self._second >= 1:
            self._second, self._bytes = now, 0
        self._bytes += count
        return self._bytes > limits.LSP_HEARD_BYTES_MAX
