"""Child processes behind the ProcessRunner port.

Each runs as the leader of a session and process group of its own, with no input. Output is taken
as it comes and kept up to a bound; what exceeds it is read and dropped, so that the child never
blocks on a full pipe. What a command may do is decided by the caller.

Invariant: when `run` is over, by return, timeout or cancellation, the group is gone and its
leader is reaped. A child that left the group cannot keep the caller waiting.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from perdure.core.limits import PROCESS_DRAIN_SECONDS, PROCESS_TERMINATE_SECONDS
from perdure.ports import ProcessResult


class LocalProcesses:
    """Adapter of ports.ProcessRunner."""

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
        over = asyncio.Event()
        # In a task of its own: a caller that is cancelled while the child is being made must not
        # leave it behind, and asyncio alone would end only the leader of its group.
        task = asyncio.create_task(
            _run(
                arguments,
                directory=directory,
                environment=environment,
                timeout_seconds=timeout_seconds,
                errors=subprocess.DEVNULL if separate_errors else subprocess.STDOUT,
                child=_Child(output_bytes_max, over),
            ),
            name=f"process {arguments[0]}",
        )
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            over.set()
            await asyncio.wait([task])
            if not task.cancelled():
                # It may have failed to start; nobody is there to be told.
                task.exception()
            raise


def find_ripgrep() -> str | None:
    """The ripgrep that was installed with us, else the one on the search path. Never fetched."""
    return shutil.which("rg", path=os.path.dirname(sys.executable)) or shutil.which("rg")


class _Child(asyncio.SubprocessProtocol):
    """What a child has said so far, and whether it is over."""

    def __init__(self, bytes_max: int, over: asyncio.Event) -> None:
        self.output = bytearray()
        self.truncated = False
        self.over = over
        """Set when it has exited, or nobody wants it any more."""
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self._bytes_max = bytes_max

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        room = self._bytes_max - len(self.output)
        self.output += data[:room]
        self.truncated = self.truncated or len(data) > room

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()


async def _run(
    arguments: Sequence[str],
    *,
    directory: str,
    environment: Mapping[str, str] | None,
    timeout_seconds: float,
    errors: int,
    child: _Child,
) -> ProcessResult:
    transport, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: child,
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=directory,
        env=environment,
        start_new_session=True,
    )
    in_time = await _within(timeout_seconds, child.over)
    await _end(transport.get_pid(), child)
    exit_code = transport.get_returncode()
    transport.close()
    return ProcessResult(
        exit_code=exit_code if in_time else None,
        output=bytes(child.output),
        truncated=child.truncated,
        timed_out=not in_time,
    )


async def _end(group: int, child: _Child) -> None:
    """Ask what is left of the group to end, then make it; take the last of the output."""
    if not child.exited.is_set():
        _signal(group, signal.SIGTERM)
        # Silence too: children still cleaning up have the same grace as their leader.
        await _within(PROCESS_TERMINATE_SECONDS, child.exited, child.silent)
    _signal(group, signal.SIGKILL)
    await child.exited.wait()
    # Whoever holds the pipe now has left the group; its silence is not worth a long wait.
    await _within(PROCESS_DRAIN_SECONDS, child.silent)


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
