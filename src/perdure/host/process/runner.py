"""Child processes behind the ProcessRunner port.

Each child leads its own session and process group and has no input. Output is kept up to a bound,
with the rest read and dropped, or written to a sink, which applies backpressure. The caller decides
what a command may do.

Invariant: when a run ends, by return, timeout or cancellation, its group is killed and its leader
reaped. A descendant that left the group cannot delay the caller; one that still holds the output
pipe is found and killed (host.process.table), one that also closed the pipe is not.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import cast

from perdure.core.limits import (
    PROCESS_DRAIN_SECONDS,
    PROCESS_GONE_SECONDS,
    PROCESS_TERMINATE_SECONDS,
    PROCESS_WAITING_BYTES_MAX,
)
from perdure.host.process import table
from perdure.host.process.child_records import ChildRecord, ChildRecords
from perdure.host.process.launched import LaunchedTransport, Starter
from perdure.ports import OutputSink, ProcessResult
from perdure.schema.value import Value


class LocalProcesses:
    """Adapter of ports.SpoolingRunner. With `records`, its children end when this process dies.

    `starter` starts the programs that it accepts.
    """

    def __init__(self, records: ChildRecords | None = None, starter: Starter | None = None) -> None:
        self._start = _Start(records or ChildRecords(), starter)

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
        command = _Command(tuple(arguments), directory, environment, errors)
        kept = _BoundedOutput(output_bytes_max)
        ending = await _run_to_end(
            command, kept, timeout_seconds=timeout_seconds, start=self._start
        )
        return ending.to_result(output=bytes(kept.output), truncated=kept.truncated)

    async def run_into(
        self,
        sink: OutputSink,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> ProcessResult:
        command = _Command(tuple(arguments), directory, environment, subprocess.STDOUT)
        ending = await _run_to_end(
            command, sink, timeout_seconds=timeout_seconds, start=self._start
        )
        return ending.to_result(output=b"", truncated=False)


def find_ripgrep() -> str | None:
    """The ripgrep on the search path, else the one that `perdure[tools]` has installed.

    The installation of the machine comes first: its owner updates it. Activating a virtual
    environment puts the installed one on the search path as well.
    """
    return shutil.which("rg") or shutil.which("rg", path=os.path.dirname(sys.executable))


class _Command(Value):
    arguments: tuple[str, ...]
    directory: str
    environment: Mapping[str, str] | None
    errors: int


class _Ending(Value):
    exit_code: int | None
    timed_out: bool
    left_running: bool

    def to_result(self, *, output: bytes, truncated: bool) -> ProcessResult:
        return ProcessResult(
            exit_code=self.exit_code,
            output=output,
            truncated=truncated,
            timed_out=self.timed_out,
            left_running=self.left_running,
        )


class _BoundedOutput:
    """Keeps the first bytes of the output and drops the rest. Never waits."""

    def __init__(self, bytes_max: int) -> None:
        self.output = bytearray()
        self.truncated = False
        self._bytes_max = bytes_max

    def take(self, data: bytes) -> None:
        room = self._bytes_max - len(self.output)
        self.output += data[:room]
        self.truncated = self.truncated or len(data) > room


class _Child(asyncio.SubprocessProtocol):
    """Passes the output of a child to `destination`, and signals its end."""

    def __init__(self, destination: _BoundedOutput | OutputSink, over: asyncio.Event) -> None:
        self.over = over
        """Set when the child has exited, or its run is cancelled."""
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        """Set when the output pipe is closed."""
        self._destination = destination
        self._waiting = bytearray()
        self._changed = asyncio.Event()
        self._closed = False
        self._pipe: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of other event loops are not instances of the classes.
        child = cast("asyncio.SubprocessTransport", transport)
        self._pipe = cast("asyncio.ReadTransport", child.get_pipe_transport(1))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if isinstance(self._destination, _BoundedOutput):
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
        """The inode of the output pipe."""
        assert self._pipe is not None
        return os.fstat(self._pipe.get_extra_info("pipe").fileno()).st_ino

    async def deliver(self) -> None:
        """Write the output to the sink until it is closed. A failing sink ends the run."""
        sink = self._destination
        if isinstance(sink, _BoundedOutput):
            return
        try:
            while self._waiting or not self._closed:
                await self._changed.wait()
                if data := self._take_waiting():
                    await sink.write(data)
        except BaseException:
            # Continue reading and drop the output, so that its end is noticed.
            self._destination = _BoundedOutput(0)
            self._take_waiting()
            self.over.set()
            raise

    def _take_waiting(self) -> bytes:
        """Take the buffered output and resume reading."""
        self._changed.clear()
        data, self._waiting = bytes(self._waiting), bytearray()
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.resume_reading()
        return data

    def close(self) -> None:
        """Mark the output as complete."""
        self._closed = True
        self._changed.set()


async def _run_to_end(
    command: _Command,
    destination: _BoundedOutput | OutputSink,
    *,
    timeout_seconds: float,
    start: "_Start",
) -> _Ending:
    child = _Child(destination, asyncio.Event())
    # In its own task: a caller that is cancelled while the child starts must not leave it behind,
    # and asyncio alone would kill only the leader of its group.
    task = asyncio.create_task(
        _run(command, child, timeout_seconds, start), name=f"process {command.arguments[0]}"
    )
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        child.over.set()
        await asyncio.wait([task])
        if not task.cancelled():
            # Mark its error as retrieved; the cancelled caller does not need it.
            task.exception()
        raise


async def _run(
    command: _Command, child: _Child, timeout_seconds: float, start: "_Start"
) -> _Ending:
    with start.records.begin() as record:
        transport = await start(command, child, record)
    delivery = asyncio.create_task(child.deliver(), name="output")
    in_time = await _wait_for(timeout_seconds, child.over)
    left_running = await _end_group(transport.get_pid(), child)
    # Not before: a run that is cut off here leaves its record, so that its child is ended later.
    record.end()
    exit_code = transport.get_returncode()
    transport.close()
    child.close()
    await delivery
    return _Ending(exit_code if in_time else None, not in_time, in_time and left_running)


class _Start(Value):
    """Starts a command as a child, recorded."""

    records: ChildRecords
    starter: Starter | None

    async def __call__(
        self, command: _Command, child: _Child, record: ChildRecord
    ) -> asyncio.SubprocessTransport:
        own = os.environ if command.environment is None else command.environment
        environment = record.mark(own)
        if self.starter is not None and self.starter.accepts(command.arguments):
            launched = await _launch(
                self.starter, command, child, environment=environment, record=record
            )
            if launched is not None:
                return launched
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *command.arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=command.errors,
            cwd=command.directory,
            env=environment,
            start_new_session=True,
        )
        record.started(transport.get_pid())
        return transport


async def _launch(
    starter: Starter,
    command: _Command,
    child: _Child,
    *,
    environment: Mapping[str, str],
    record: ChildRecord,
) -> LaunchedTransport | None:
    read_end, write_end = os.pipe()
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        errors = nothing if command.errors == subprocess.DEVNULL else write_end
        held = await starter.start(
            command.arguments, environment=environment, output=write_end, errors=errors
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
        os.close(nothing)
    if held is None:
        os.close(read_end)
        return None
    transport = LaunchedTransport(held.pid, child)
    await transport.connect(read_end)
    record.started(held.pid)
    held.release()
    return transport


async def _end_group(group: int, child: _Child) -> bool:
    """Kill the rest of the group and read the last output; returns whether anything was left."""
    left = False
    if child.exited.is_set():
        # Background children get a short time to finish.
        await _wait_for(PROCESS_DRAIN_SECONDS, child.silent)
        left = await _has_remaining(group)
    else:
        table.signal_group(group, signal.SIGTERM)
        # Wait for the pipe too: children that clean up get the same time as their leader.
        await _wait_for(PROCESS_TERMINATE_SECONDS, child.exited, child.silent)
    table.signal_group(group, signal.SIGKILL)
    await child.exited.wait()
    if await _wait_for(PROCESS_DRAIN_SECONDS, child.silent):
        return left
    # Processes that still hold the pipe have left the group.
    escaped = await asyncio.to_thread(table.list_pipe_writers, child.pipe)
    for process in escaped:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    await _wait_for(PROCESS_DRAIN_SECONDS, child.silent)
    return left or bool(escaped)


async def _has_remaining(group: int) -> bool:
    """Whether the group has members that are not just exiting."""
    if not table.has_members(group):
        return False
    # The system closes the output of a process before it removes the process.
    await asyncio.sleep(PROCESS_GONE_SECONDS)
    return table.has_members(group)


async def _wait_for(seconds: float, *events: asyncio.Event) -> bool:
    """Wait for all of `events`, at most `seconds`; returns whether all are set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
    return all(event.is_set() for event in events)
