"""The terminals of a Location: programs behind a PTY, with their latest output.

Any number of readers may be attached to one. Each has its own cursor in the kept output; one that
falls behind is disconnected and does not delay the others. Nothing of a terminal is durable, and it
ends with its Location. The server connects readers to sockets.

Variables, in rising precedence: those of this process, the caller's, the PTY Environment's (merged
by the caller of `create`), and the fixed ones.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

from msgspec import UNSET, structs

from perdure.core import limits
from perdure.core.text.output_ring import OutputRing
from perdure.host import descriptors
from perdure.ports import IdSource, Terminal, TerminalHost
from perdure.ports.tasks import StartTask
from perdure.schema.errors import (
    InvalidRequestError,
    PtyNotFoundError,
    ServiceUnavailableError,
)
from perdure.schema.files.pty import PtyExitedError, PtyInfo, PtySize, PtyStart
from perdure.schema.ids import PtyID
from perdure.schema.live_event import LiveEvent, PtyCreated, PtyDeleted, PtyExited, PtyUpdated
from perdure.schema.value import Confidential

_FORCED: Final = {"TERM": "xterm-256color", "OPENCODE_TERMINAL": "1"}
_WITHHELD: Final = frozenset({"OPENCODE_SERVER_PASSWORD"})
"""Variables of the server that terminals must not get."""
_LOGIN_SHELLS: Final = frozenset({"bash", "dash", "fish", "ksh", "sh", "zsh"})
_SIZE: Final = PtySize(rows=24, cols=80)
_SHOWN_CHARS_MAX: Final = 200


class Attachment:
    """One reader of one terminal."""

    def __init__(self, terminal: "_Terminal", cursor: int) -> None:
        self._terminal = terminal
        self._changed = asyncio.Event()
        self.cursor = cursor
        self.lagged = False
        """Whether the stream ended because this reader fell behind."""

    def wake(self) -> None:
        self._changed.set()

    def kept(self) -> str:
        """Read the kept output from the cursor on."""
        text = self._terminal.ring.since(self.cursor)
        self.cursor = self._terminal.ring.end
        return text

    async def next(self) -> str | None:
        """The output since the last call; waits for some, and returns None at the end."""
        ring = self._terminal.ring
        while True:
            if self.cursor < ring.start:
                self.lagged = True
                return None
            if self.cursor < ring.end:
                return self.kept()
            if self._terminal.over.is_set():
                return None
            self._changed.clear()
            await self._changed.wait()

    async def write(self, data: bytes) -> None:
        """Send input; waits while the program does not read."""
        await self._terminal.process.write(data)


class _Terminal:
    process: Terminal

    def __init__(self) -> None:
        self.ring = OutputRing(units_max=limits.PTY_KEPT_UNITS_MAX)
        self.readers: set[Attachment] = set()
        self.over = asyncio.Event()

    def append(self, text: str) -> None:
        self.ring.append(text)
        self.wake()

    def wake(self) -> None:
        for reader in self.readers:
            reader.wake()


class LocationTerminals:
    def __init__(
        self,
        directory: str,
        *,
        host: TerminalHost,
        ids: IdSource,
        variables: Mapping[str, str],
        publish: Callable[[LiveEvent], None],
        start: StartTask,
    ) -> None:
        self._directory = directory
        self._host = host
        self._ids = ids
        self._variables = variables
        self._publish = publish
        self._start = start
        self._infos: dict[PtyID, PtyInfo] = {}
        self._running: dict[PtyID, _Terminal] = {}
        self._starting = 0

    @property
    def running(self) -> bool:
        return bool(self._running) or self._starting > 0

    def list(self) -> tuple[PtyInfo, ...]:
        """All terminals in creation order, including recently exited ones."""
        return tuple(self._infos.values())

    def get(self, id: PtyID) -> PtyInfo:
        info = self._infos.get(id)
        if info is None:
            raise PtyNotFoundError(id)
        return info

    def directory(self, cwd: str | None) -> str:
        """The working directory of a terminal with the requested `cwd`."""
        found = os.path.normpath(os.path.join(self._directory, cwd or ""))
        if "\0" in found or not os.path.isdir(found):
            raise _refused(f"{found[:_SHOWN_CHARS_MAX]!r} is not a directory", "cwd")
        return found

    async def create(self, request: PtyStart, *, shell: str | None) -> PtyInfo:
        """Start a terminal; `shell` is the configured one. Raises InvalidRequestError."""
        if len(self._running) + self._starting >= limits.PTYS_RUNNING_MAX:
            most = limits.PTYS_RUNNING_MAX
            raise ServiceUnavailableError(
                f"{most} terminals are running here; remove one first", service="pty"
            )
        plan = self._plan(request, shell)
        terminal = _Terminal()
        self._starting += 1
        try:
            terminal.process = await self._host.open(
                (plan.program, *plan.args),
                directory=plan.directory,
                environment=plan.variables,
                size=_SIZE,
                heard=terminal.append,
            )
        except (OSError, UnicodeError) as error:
            if isinstance(error, OSError) and descriptors.are_exhausted(error):
                raise
            command = plan.command[:_SHOWN_CHARS_MAX]
            raise _refused(f"Unable to start {command}: {error}") from error
        finally:
            self._starting -= 1
        return self._register(plan, terminal, request.title)

    def update(self, id: PtyID, *, title: str | None, size: PtySize | None) -> PtyInfo:
        """Rename or resize a terminal, or both. An exited one is not resized."""
        info = self.get(id)
        terminal = self._running.get(id)
        if size is not None and terminal is not None:
            terminal.process.resize(size)
        if title is not None:
            info = self._infos[id] = structs.replace(info, title=title)
        self._publish(PtyUpdated(info))
        return info

    async def remove(self, id: PtyID) -> None:
        """End and remove a terminal. Returns when its program has ended."""
        self.get(id)
        terminal = self._running.get(id)
        self._forget(id)
        if terminal is not None:
            # In a task: a cancelled caller must not leave it half ended.
            self._start(terminal.process.end())
            await terminal.over.wait()

    @contextmanager
    def attached(self, id: PtyID, cursor: int | None) -> Generator[Attachment]:
        """Attach a reader at `cursor`; -1 is the end, and None all kept output.

        Raises PtyNotFoundError and PtyExitedError.
        """
        self.get(id)
        terminal = self._running.get(id)
        if terminal is None:
            raise PtyExitedError
        ring = terminal.ring
        # An unknown cursor gets all kept output.
        known = cursor is not None and ring.start <= cursor <= ring.end
        begin = ring.end if cursor == -1 else cursor if known and cursor is not None else ring.start
        reader = Attachment(terminal, begin)
        terminal.readers.add(reader)
        try:
            yield reader
        finally:
            terminal.readers.discard(reader)

    def close(self) -> None:
        """End every terminal at once."""
        for terminal in self._running.values():
            terminal.process.kill()

    def _plan(self, request: PtyStart, shell: str | None) -> "_LaunchPlan":
        directory = self.directory(request.cwd)
        variables = self._environment(request)
        command = request.command or _preferred_shell(shell, variables)
        program = _program(command, directory, variables)
        args = request.args
        if args is None:
            args = ("-l",) if os.path.basename(program) in _LOGIN_SHELLS else ()
        if any("\0" in text for text in args):
            raise _refused("An argument cannot contain a NUL character", "args")
        return _LaunchPlan(command, program, args, directory, variables)

    def _register(self, plan: "_LaunchPlan", terminal: _Terminal, title: str | None) -> PtyInfo:
        pty_id = PtyID(self._ids.named("pty"))
        info = PtyInfo(
            id=pty_id,
            title=title or f"Terminal {pty_id[-4:]}",
            command=plan.command,
            args=plan.args,
            cwd=plan.directory,
            status="running",
            pid=terminal.process.pid,
        )
        self._infos[pty_id] = info
        self._running[pty_id] = terminal
        self._publish(PtyCreated(info))
        self._start(self._watch(pty_id, terminal))
        return info

    async def _watch(self, id: PtyID, terminal: _Terminal) -> None:
        code: int | None = None
        try:
            code = await terminal.process.run()
        finally:
            self._running.pop(id, None)
            terminal.over.set()
            if code is not None and id in self._infos:
                info = structs.replace(self._infos[id], status="exited", exit_code=code)
                self._infos[id] = info
                self._publish(PtyExited(id=id, exit_code=code))
            terminal.wake()
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        exited = [info.id for info in self._infos.values() if info.exit_code is not UNSET]
        for pty_id in exited[: -limits.PTYS_EXITED_MAX]:
            self._forget(pty_id)

    def _forget(self, id: PtyID) -> None:
        del self._infos[id]
        self._publish(PtyDeleted(id=id))

    def _environment(self, request: PtyStart) -> dict[str, str]:
        for name, value in request.env:
            if not name or "=" in name or "\0" in name + value:
                raise _refused(f"{name[:_SHOWN_CHARS_MAX]!r} cannot be a variable", "env")
        own = {name: text for name, text in self._variables.items() if name not in _WITHHELD}
        return {**own, **dict(request.env), **_FORCED}


class _LaunchPlan(Confidential):
    """The program to start, its directory and its variables."""

    command: str
    program: str
    args: tuple[str, ...]
    directory: str
    variables: Mapping[str, str]


def _preferred_shell(configured: str | None, variables: Mapping[str, str]) -> str:
    on_mac = ("/bin/zsh",) if sys.platform == "darwin" else ()
    wanted = (configured, variables.get("SHELL"), *on_mac, "/bin/bash")
    return next((shell for shell in wanted if shell and shutil.which(shell)), "/bin/sh")


def _program(command: str, directory: str, variables: Mapping[str, str]) -> str:
    """The absolute path of a command's program, started in that directory."""
    if "\0" not in command:
        path = os.path.join(directory, command) if "/" in command else command
        found = shutil.which(path, path=variables.get("PATH", os.defpath))
        if found is not None:
            return os.path.join(directory, found)
    raise _refused(f"{command[:_SHOWN_CHARS_MAX]!r} is not a program", "command")


def _refused(message: str, field: str | None = None) -> InvalidRequestError:
    return InvalidRequestError(message, kind="Payload", field=field)
