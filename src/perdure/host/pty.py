"""Terminals of the operating system: a child with a controlling terminal, and our end of it.

The child leads a session of its own. A terminal becomes the controlling one when the leader of a
session without one opens it, so a shell opens it and then becomes the program; nothing of ours
runs between fork and exec. Bytes go both ways as they are; what they mean is up to the caller.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from perdure.core import limits
from perdure.host import process_table
from perdure.schema.pty import PtySize

_SHELL: Final = "/bin/sh"
_BECOME: Final = 'exec 0<>"$0" 1>&0 2>&0; exec "$@"'
_READ_BYTES: Final = 64 * 1024
_OVER: Final = frozenset({errno.EIO, errno.EBADF})


class LocalPty:
    """Adapter of ports.Terminal."""

    def __init__(
        self, process: asyncio.subprocess.Process, descriptor: int, heard: Callable[[str], None]
    ) -> None:
        self.pid = process.pid
        self._process = process
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
            code = await self._process.wait()
            self._drain()
        finally:
            if self._process.returncode is None:
                self.kill()
                await self._process.wait()
            self._close()
        return code if code >= 0 else 128 - code

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
                await self._process.wait()
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        """End every process of the session, now."""
        for process in process_table.session(self.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if self._process.returncode is None:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # Once it is reaped the number may be another's.
        if self._process.returncode is None:
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
            process = await asyncio.create_subprocess_exec(
                *(_SHELL, "-c", _BECOME, os.ttyname(theirs)),
                *arguments,
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return LocalPty(process, ours, heard)


def _set_size(descriptor: int, size: PtySize) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.cols, 0, 0))
