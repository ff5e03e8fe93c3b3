"""Long-running programs with piped input and output, behind the PipedProcesses port.

Each leads its own session and process group. Its stderr is dropped. The caller interprets the data
and sets timeouts.

Invariant: nothing here waits for the program to read, write or exit, and unread input is bounded.
A program that closes its output is over; `kill` ends its whole session. A process that left the
session is not found.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from perdure.core import limits
from perdure.host.process import table
from perdure.host.process.child_records import ChildRecord, ChildRecords

_INPUT: Final = 0
_OUTPUT: Final = 1


class LocalPipedProcess(asyncio.SubprocessProtocol):
    """Adapter of ports.PipedProcess."""

    def __init__(
        self, heard: Callable[[bytes], None], ended: Callable[[], None], record: ChildRecord
    ) -> None:
        self.over = False
        self._record = record
        self._heard = heard
        self._ended = ended
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of other event loops are not instances of the class.
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if not self.over:
            self._heard(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _OUTPUT:
            self._end()

    def process_exited(self) -> None:
        self._exited.set()
        self._record.end()
        # Its last output may not have arrived yet; a child of it may hold the pipe for ever.
        if not self.over:
            asyncio.get_running_loop().call_later(limits.PROCESS_DRAIN_SECONDS, self._end)

    def send(self, data: bytes) -> bool:
        if self.over or self._transport is None:
            return False
        pipe = cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(_INPUT))
        if pipe is None or pipe.is_closing():
            return False
        if pipe.get_write_buffer_size() + len(data) > limits.LSP_UNREAD_BYTES_MAX:
            return False
        pipe.write(data)
        return True

    def close_input(self) -> None:
        pipe = None if self._transport is None else self._transport.get_pipe_transport(_INPUT)
        if pipe is not None:
            pipe.close()

    def kill(self) -> None:
        transport = self._transport
        if transport is None:
            return
        for process in table.list_session(transport.get_pid()):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        # Without /proc only the group is known, until its leader is reaped.
        if transport.get_returncode() is None:
            table.signal_group(transport.get_pid(), signal.SIGKILL)
        # Not transport.close(), which would poll the child and so reap it instead of the loop.
        for number in (_INPUT, _OUTPUT):
            pipe = transport.get_pipe_transport(number)
            if pipe is not None:
                pipe.close()
        self._end()

    async def gone(self) -> None:
        await self._exited.wait()
        if self._transport is not None:
            self._transport.close()

    def _end(self) -> None:
        if not self.over:
            self.over = True
            self._ended()


class LocalPipedProcesses:
    """Adapter of ports.PipedProcesses."""

    def __init__(self, records: ChildRecords | None = None) -> None:
        self._records = records or ChildRecords()

    async def start(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        heard: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> LocalPipedProcess:
        with self._records.begin() as record:
            process = LocalPipedProcess(heard, ended, record)
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: process,
                *arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=directory,
                env=record.mark(environment),
                start_new_session=True,
            )
            record.started(transport.get_pid())
        return process
