"""Terminals of the operating system: a child with a controlling terminal, and our end of it.

The child leads a session of its own. A terminal becomes the controlling one when the leader of a
session without one opens it, so a shell opens it and then becomes the program. It obeys the keys of
its terminal whatever we were started to ignore: see host.process.spawn. Bytes go both ways as they
are; what they mean is up to the caller.

Invariant: nothing here waits for the child to read, to write or to obey. When `run` is over, by
itself or cancelled, the child is reaped and our end is closed; whoever ends it, ends its session.
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
from perdure.schema.files.pty import PtySize

_BECOME: Final = 'cd -- "$1" && unset OLDPWD && shift && exec 0<>"$0" 1>&0 2>&0 && exec "$@"'
_READ_BYTES: Final = 64 * 1024
_UNKNOWN: Final = 255
"""The exit code of a program that ended unseen."""
_OVER: Final = frozenset({errno.EIO, errno.EBADF})


class LocalPty:
    """Adapter of ports.Terminal."""

    def __init__(self, pid: int, descriptor: int, heard: Callable[[str], None]) -> None:
        self.pid = pid
        self._leader = _Leader(pid)
        self._descriptor = descriptor
        self._heard = heard
        # Output is cut anywhere, also within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._typed = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        self._loop = asyncio.get_running_loop()
        self._open = True
        self._loop.add_reader(descriptor, self._readable)

    async def run(self) -> int:
        """Wait for the child's end; its exit code, with 128 and the number for a signal."""
        try:
            code = await self._leader.wait()
            self._drain()
        finally:
            if not self._leader.is_over:
                self.kill()
                await self._leader.wait()
            self._close()
        return code

    async def write(self, data: bytes) -> None:
        """Type; returns when there is room for more. After the end it is dropped."""
        if not self._open:
            return
        self._typed += data
        self._writable()
        await self._room.wait()

    def resize(self, size: PtySize) -> None:
        if self._open:
            _set_size(self._descriptor, size)

    async def end(self) -> None:
        """Hang up, and kill what does not take the hint."""
        self._signal(signal.SIGHUP)
        self._signal(signal.SIGCONT)
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.PROCESS_TERMINATE_SECONDS):
                await self._leader.wait()
        self.kill()
        await self._leader.wait()

    def kill(self) -> None:
        """End every process of the session, now."""
        for process in table.session(self.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not self._leader.is_over:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # Once it is reaped the number may be another's.
        if not self._leader.is_over:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _readable(self) -> None:
        self._read()

    def _drain(self) -> None:
        """What was printed before the end. Bounded: a child of the child may go on printing."""
        for _ in range(limits.PTY_DRAIN_READS_MAX):
            if not self._read():
                return

    def _read(self) -> bool:
        """Take what is there; whether there may be more."""
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
            # Nobody has the other end open any more. That the child is over, `run` will notice.
            self._loop.remove_reader(self._descriptor)
            return False
        if text := self._decoder.decode(data):
            self._heard(text)
        return True

    def _writable(self) -> None:
        try:
            while self._typed and self._open:
                written = os.write(self._descriptor, self._typed[:_READ_BYTES])
                del self._typed[:written]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._writable)
        except OSError as error:
            if error.errno not in _OVER:
                raise
            self._typed.clear()
        if not self._typed and self._open:
            self._loop.remove_writer(self._descriptor)
        if len(self._typed) < limits.PTY_TYPED_BYTES_MAX:
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
        self._typed.clear()
        self._room.set()
        if text := self._decoder.decode(b"", final=True):
            self._heard(text)


class _Leader:
    """The program in a terminal, as its parent knows it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._reap, name=f"terminal {pid}", daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._ended.done()

    async def wait(self) -> int:
        """Its exit code, with 128 and the number for a signal."""
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        except ChildProcessError:
            # We were started to ignore the ends of children: it is over, and left no code.
            code = _UNKNOWN
        # The loop may be closed: then nobody waits any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(
                self._ended.set_result, code if code >= 0 else 128 - code
            )


class LocalPtys:
    """Adapter of ports.TerminalHost."""

    async def open(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        size: PtySize,
        heard: Callable[[str], None],
    ) -> LocalPty:
        ours, theirs = os.openpty()
        try:
            os.set_blocking(ours, False)
            _set_size(ours, size)
            # One that cannot be entered is our caller's to hear of, not the terminal's to show.
            os.stat(os.path.join(directory, "."))
            pid = spawn.shell(
                _BECOME,
                (os.ttyname(theirs), directory, *arguments),
                environment=environment,
                files=[(os.POSIX_SPAWN_DUP2, theirs, standard) for standard in range(3)],
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return LocalPty(pid, ours, heard)


def _set_size(descriptor: int, size: PtySize) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))
