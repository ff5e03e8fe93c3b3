"""Pseudo-terminals: a child with a controlling terminal, behind the TerminalHost port.

The child leads its own session. A terminal becomes the controlling one when the leader of a session
without one opens it, so a shell opens it and then execs the program. The child does not inherit
ignored signals: see host.process.spawn. Bytes pass unchanged in both directions.

Invariant: nothing here waits for the child to read, write or exit. When `run` ends, by itself or
cancelled, the child is reaped and the descriptor closed; `kill` ends the child's whole session.
"""

import asyncio
import codecs
import errno
import fcntl
import os
import signal
import struct
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from perdure.core import limits
from perdure.host.process import spawn, table
from perdure.host.process.child_records import ChildRecord, ChildRecords
from perdure.schema.files.pty import PtySize

_BECOME: Final = 'cd -- "$1" && unset OLDPWD && shift && exec 0<>"$0" 1>&0 2>&0 && exec "$@"'
_READ_BYTES: Final = 64 * 1024
_UNKNOWN: Final = 255
"""The exit code of a program whose own is not known."""
_OVER: Final = frozenset({errno.EIO, errno.EBADF})


class LocalPty:
    """Adapter of ports.Terminal."""

    def __init__(
        self, pid: int, descriptor: int, heard: Callable[[str], None], record: ChildRecord
    ) -> None:
        self.pid = pid
        self._record = record
        self._leader = _Leader(pid)
        self._descriptor = descriptor
        self._heard = heard
        # A read may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unsent = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._loop.add_reader(descriptor, self._readable)

    async def run(self) -> int:
        """Wait for the child's end; returns its exit code, 128 plus the number for a signal."""
        try:
            code = await self._leader.wait()
            self._drain()
        finally:
            if not self._leader.is_over:
                self.kill()
                await self._leader.wait()
            self._record.end()
            self._close()
        return code

    async def write(self, data: bytes) -> None:
        """Send input; returns when the buffer has room. After the end it is dropped."""
        if not self._open:
            return
        self._unsent += data
        self._writable()
        await self._room.wait()

    def resize(self, size: PtySize) -> None:
        if self._open:
            _set_size(self._descriptor, size)

    async def end(self) -> None:
        """Hang up, and kill the child if it does not exit."""
        self._signal(signal.SIGHUP)
        self._signal(signal.SIGCONT)
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.PROCESS_TERMINATE_SECONDS):
                await self._leader.wait()
        self.kill()
        await self._leader.wait()

    def kill(self) -> None:
        """Kill every process of the session."""
        for process in table.list_session(self.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not self._leader.is_over:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # After reaping, the pid may belong to another process.
        if not self._leader.is_over:
            table.signal_group(self.pid, number)

    def _readable(self) -> None:
        self._read()

    def _drain(self) -> None:
        """Read the remaining output. Bounded: a child of the child may keep printing."""
        for _ in range(limits.PTY_DRAIN_READS_MAX):
            if not self._read():
                return

    def _read(self) -> bool:
        """Read available output; returns whether there may be more."""
        if not self._open:
            return False
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _OVER:
                raise
            data = b""
        if not data:
            # The other end is closed. `run` notices the end of the child.
            self._loop.remove_reader(self._descriptor)
            return False
        if text := self._decoder.decode(data):
            self._heard(text)
        return True

    def _writable(self) -> None:
        try:
            while self._unsent and self._open:
                written = os.write(self._descriptor, self._unsent[:_READ_BYTES])
                del self._unsent[:written]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._writable)
        except OSError as error:
            if error.errno not in _OVER:
                raise
            self._unsent.clear()
        if not self._unsent and self._open:
            self._loop.remove_writer(self._descriptor)
        if len(self._unsent) < limits.PTY_TYPED_BYTES_MAX:
            self._room.set()
        else:
            self._room.clear()

    def _close(self) -> None:
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._descriptor)
        self._loop.remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._unsent.clear()
        self._room.set()
        if text := self._decoder.decode(b"", final=True):
            self._heard(text)


class _Leader:
    """The child process of a terminal: waits for its end in a thread."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._reap, name=f"terminal {pid}", daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._ended.done()

    async def wait(self) -> int:
        """Wait for the exit code, 128 plus the number for a signal."""
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        except ChildProcessError:
            # SIGCHLD is ignored in this process, so the exit code is lost.
            code = _UNKNOWN
        # The loop may be closed already.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(
                self._ended.set_result, code if code >= 0 else 128 - code
            )


class LocalPtys:
    """Adapter of ports.TerminalHost."""

    def __init__(self, records: ChildRecords | None = None) -> None:
        self._records = records or ChildRecords()

    async def open(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        size: PtySize,
        heard: Callable[[str], None],
    ) -> LocalPty:
        master, slave = os.openpty()
        try:
            os.set_blocking(master, False)
            _set_size(master, size)
            # Raise for an inaccessible directory here, instead of a message in the terminal.
            os.stat(os.path.join(directory, "."))
            with self._records.begin("session") as record:
                pid = spawn.start_shell(
                    _BECOME,
                    (os.ttyname(slave), directory, *arguments),
                    environment=record.mark(environment),
                    files=[(os.POSIX_SPAWN_DUP2, slave, standard) for standard in range(3)],
                )
                record.started(pid)
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        return LocalPty(pid, master, heard, record)


def _set_size(descriptor: int, size: PtySize) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))
