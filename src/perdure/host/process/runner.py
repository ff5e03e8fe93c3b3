"""Child processes behind the ProcessRunner port.

Each runs as the leader of a session and process group of its own, with no input. Output is taken
as it comes: kept up to a bound, with the rest read and dropped, or handed to a sink, which slows
the child down to its own speed. What a command may do is decided by the caller.

Invariant: when a run is over, by return, timeout or cancellation, the group is gone and its leader
is reaped. A child that left the group cannot keep the caller waiting; one that still holds our
pipe is found and ended (host.process.table), one that gave up the pipe as well is not.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from perdure.core.limits import (
    PROCESS_DRAIN_SECONDS,
    PROCESS_GONE_SECONDS,
    PROCESS_TERMINATE_SECONDS,
    PROCESS_WAITING_BYTES_MAX,
)
from perdure.host.process import table
from perdure.ports import OutputSink, ProcessResult
from perdure.schema.value import Value


class LocalProcesses:
    """Adapter of ports.SpoolingRunner."""

    async def run(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
        output_bytes_max: int,
        separate_errors: bool = False,
    ) -> ProcessResult:
        errors = subprocess.DEVNULL if separate_errors else subprocess.STDOUT
        start = _Start(tuple(arguments), directory, environment, errors)
        kept = _Kept(output_bytes_max)
        result = await _to_its_end(start, kept, timeout_seconds=timeout_seconds)
        return result.of(output=bytes(kept.output), truncated=kept.truncated)

    async def run_into(
        self,
        sink: OutputSink,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> ProcessResult:
        start = _Start(tuple(arguments), directory, environment, subprocess.STDOUT)
        result = await _to_its_end(start, sink, timeout_seconds=timeout_seconds)
        return result.of(output=b"", truncated=False)


def find_ripgrep() -> str | None:
    """The ripgrep that was installed with us, else the one on the search path. Never fetched."""
    return shutil.which("rg", path=os.path.dirname(sys.executable)) or shutil.which("rg")


class _Start(Value):
    arguments: tuple[str, ...]
    directory: str
    environment: Mapping[str, str] | None
    errors: int


class _End(Value):
    exit_code: int | None
    timed_out: bool
    left_running: bool

    def of(self, *, output: bytes, truncated: bool) -> ProcessResult:
        return ProcessResult(
            exit_code=self.exit_code,
            output=output,
            truncated=truncated,
            timed_out=self.timed_out,
            left_running=self.left_running,
        )


class _Kept:
    """The first bytes of the output; the rest is dropped. Never waits."""

    def __init__(self, bytes_max: int) -> None:
        self.output = bytearray()
        self.truncated = False
        self._bytes_max = bytes_max

    def take(self, data: bytes) -> None:
        room = self._bytes_max - len(self.output)
        self.output += data[:room]
        self.truncated = self.truncated or len(data) > room


class _Child(asyncio.SubprocessProtocol):
    """What a child says on its way to `destination`, and whether it is over."""

    def __init__(self, destination: _Kept | OutputSink, over: asyncio.Event) -> None:
        self.over = over
        """Set when it has exited, or nobody wants it any more."""
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        """Set when nobody can say anything more."""
        self._destination = destination
        self._waiting = bytearray()
        self._changed = asyncio.Event()
        self._closed = False
        self._pipe: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        pipe = transport.get_pipe_transport(1)
        assert isinstance(pipe, asyncio.ReadTransport)
        self._pipe = pipe

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if isinstance(self._destination, _Kept):
            self._destination.take(data)
            return
        self._waiting += data
        self._changed.set()
        if len(self._waiting) >= PROCESS_WAITING_BYTES_MAX and self._pipe is not None:
            self._pipe.pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()

    @property
    def pipe(self) -> int:
        """The inode of the pipe that it speaks through."""
        assert self._pipe is not None
        return os.fstat(self._pipe.get_extra_info("pipe").fileno()).st_ino

    async def deliver(self) -> None:
        """Hand on what was said, until there will be nothing more. A sink that fails ends it."""
        sink = self._destination
        if isinstance(sink, _Kept):
            return
        try:
            while self._waiting or not self._closed:
                await self._changed.wait()
                if said := self._taken():
                    await sink.write(said)
        except BaseException:
            # Read on and drop it, so that the end of the output is seen.
            self._destination = _Kept(0)
            self._taken()
            self.over.set()
            raise

    def _taken(self) -> bytes:
        """What waits to be handed on; there is room for more again."""
        self._changed.clear()
        said, self._waiting = bytes(self._waiting), bytearray()
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.resume_reading()
        return said

    def close(self) -> None:
        """Nothing more will be heard."""
        self._closed = True
        self._changed.set()


async def _to_its_end(
    start: _Start, destination: _Kept | OutputSink, *, timeout_seconds: float
) -> _End:
    child = _Child(destination, asyncio.Event())
    # In a task of its own: a caller that is cancelled while the child is being made must not leave
    # it behind, and asyncio alone would end only the leader of its group.
    task = asyncio.create_task(
        _run(start, child, timeout_seconds), name=f"process {start.arguments[0]}"
    )
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        child.over.set()
        await asyncio.wait([task])
        if not task.cancelled():
            # It may have failed to start; nobody is there to be told.
            task.exception()
        raise


async def _run(start: _Start, child: _Child, timeout_seconds: float) -> _End:
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: child,
        *start.arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=start.errors,
        cwd=start.directory,
        env=start.environment,
        start_new_session=True,
    )
    delivery = asyncio.create_task(child.deliver(), name="output")
    in_time = await _within(timeout_seconds, child.over)
    left_running = await _end(transport.get_pid(), child)
    exit_code = transport.get_returncode()
    transport.close()
    child.close()
    await delivery
    return _End(exit_code if in_time else None, not in_time, in_time and left_running)


async def _end(group: int, child: _Child) -> bool:
    """End what is left of the group and take the last of the output; whether anything was left."""
    left = False
    if child.exited.is_set():
        # Jobs in the background may be about to finish; they are not waited for any longer.
        await _within(PROCESS_DRAIN_SECONDS, child.silent)
        left = await _remains(group)
    else:
        _signal(group, signal.SIGTERM)
        # Silence too: children still cleaning up have the same grace as their leader.
        await _within(PROCESS_TERMINATE_SECONDS, child.exited, child.silent)
    _signal(group, signal.SIGKILL)
    await child.exited.wait()
    if await _within(PROCESS_DRAIN_SECONDS, child.silent):
        return left
    # Whoever holds the pipe now has left the group.
    escaped = await asyncio.to_thread(table.writers, child.pipe)
    for process in escaped:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    await _within(PROCESS_DRAIN_SECONDS, child.silent)
    return left or bool(escaped)


async def _remains(group: int) -> bool:
    """Whether anything of the group is left that is not just about to end."""
    if not table.has_members(group):
        return False
    # The system closes the output of a process before it lets it go.
    await asyncio.sleep(PROCESS_GONE_SECONDS)
    return table.has_members(group)


async def _within(seconds: float, *events: asyncio.Event) -> bool:
    """Wait for all of `events`, no longer than `seconds`; whether they all came."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
    return all(event.is_set() for event in events)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
