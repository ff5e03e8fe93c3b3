"""A child of this process that another process has forked: its output and its end.

It is used like one that asyncio has started, through the same protocol of callbacks.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from perdure.schema.value import Value

_OUTPUT: Final = 1
_GO: Final = b"g"
_UNKNOWN: Final = 255
"""The exit code of a child whose own is not known, as asyncio has it."""


class HeldChild(Value):
    """A child that waits for a byte before it does anything, and exits if none can come."""

    pid: int
    go: int
    """The descriptor to write that byte to."""

    def release(self) -> None:
        try:
            os.write(self.go, _GO)
        except BrokenPipeError:
            # It was killed meanwhile.
            pass
        finally:
            os.close(self.go)


class Starter(Protocol):
    """Starts some programs faster than asyncio can."""

    def accepts(self, arguments: Sequence[str]) -> bool: ...

    async def start(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], output: int, errors: int
    ) -> HeldChild | None:
        """Start it in a session of its own, without input; None if that is not possible now."""
        ...


class LaunchedTransport(asyncio.SubprocessTransport):
    """The transport of such a child; calls `protocol` as that of asyncio does."""

    def __init__(self, pid: int, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self._pid = pid
        self._protocol = protocol
        self._code: int | None = None
        self._pipe: asyncio.ReadTransport | None = None
        self._loop = asyncio.get_running_loop()
        self._end = os.pidfd_open(pid)

    async def connect(self, output: int) -> None:
        """Read its output from this descriptor, and wait for its end, both in the background."""
        pipe, _ = await self._loop.connect_read_pipe(
            lambda: _OutputProtocol(self._protocol), os.fdopen(output, "rb", 0)
        )
        self._pipe = pipe
        self._protocol.connection_made(self)
        self._loop.add_reader(self._end, self._ended)

    def get_pid(self) -> int:
        return self._pid

    def get_returncode(self) -> int | None:
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self._pipe if fd == _OUTPUT else None

    def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()

    def _ended(self) -> None:
        self._loop.remove_reader(self._end)
        os.close(self._end)
        try:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        except ChildProcessError:
            # SIGCHLD is ignored in this process, so the exit code is lost.
            self._code = _UNKNOWN
        self._protocol.process_exited()


class _OutputProtocol(asyncio.Protocol):
    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        self._protocol = protocol

    def data_received(self, data: bytes) -> None:
        self._protocol.pipe_data_received(_OUTPUT, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.pipe_connection_lost(_OUTPUT, exc)
