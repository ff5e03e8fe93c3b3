"""Commands that outlive this process, behind the DetachedProcesses port.

A small shell program supervises the command. It waits for a go signal, and ends if this process
dies before; runs the command with its output in a file; writes the exit code to a file next to it;
and kills what remains of its process group. So a command never runs unrecorded, and a later process
can read how it ended.

Invariant: a signal is only sent to a process with the identity of the started one, or that writes
to its output file. Without /proc nothing is known about commands of another process.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from perdure.core.session.job import DetachedProcess, Sighting
from perdure.host.process import orphans, spawn, table
from perdure.ports import DetachedCommand

_EXIT: Final = ".exit"
_GO: Final = b"go\n"
# The traps keep it alive when its group is terminated, and are not inherited by the command. The
# exit code is written atomically; if that fails, only the parent process can learn it. The last
# line also kills this program itself.
_SUPERVISOR: Final = """\
IFS= read -r go || exit 125
trap : HUP INT QUIT TERM
cd -- "$2" && (shift 2; exec "$@" </dev/null)
code=$?
printf '%s\\n' "$code" >"$1.part" && mv -f -- "$1.part" "$1" || exit "$code"
kill -s KILL 0
"""


class LocalDetached:
    """Adapter of ports.DetachedProcesses."""

    def __init__(self) -> None:
        self._children: set[int] = set()
        """Processes that this process started and must reap."""
        self._reaped: dict[int, int] = {}
        """Exit codes of reaped processes, which may not have written it themselves."""

    async def start(self, command: DetachedCommand) -> "_HeldProcess":
        held = await asyncio.to_thread(_spawn, command)
        self._children.add(held.process.pid)
        return held

    def look(self, process: DetachedProcess) -> Sighting:
        # In this order: a dead process has already written its exit code.
        alive = self._is_alive(process)
        code = _read_exit_code(process)
        if code is None and not alive:
            code = self._reaped.get(process.pid)
        return Sighting(alive=alive, exit_code=code, output_bytes=_size(process.output))

    def terminate(self, process: DetachedProcess) -> None:
        if self._is_alive(process):
            table.signal_group(process.pid, signal.SIGTERM)

    async def kill(self, process: DetachedProcess) -> None:
        if self._is_alive(process):
            table.signal_group(process.pid, signal.SIGKILL)
        for writer in await asyncio.to_thread(table.list_file_writers, process.output):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(writer, signal.SIGKILL)

    async def clean(self, process: DetachedProcess, *, output_bytes_max: int) -> None:
        self._reaped.pop(process.pid, None)
        for path in (process.output + _EXIT, f"{process.output}{_EXIT}.part"):
            with suppress(FileNotFoundError):
                os.unlink(path)
        if _size(process.output) > output_bytes_max:
            await asyncio.to_thread(os.truncate, process.output, output_bytes_max)

    def _is_alive(self, process: DetachedProcess) -> bool:
        if process.pid not in self._children:
            return bool(process.identity) and (table.read_identity(process.pid) == process.identity)
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            self._children.discard(process.pid)
            return False
        if pid == 0:
            return True
        self._children.discard(pid)
        ended = os.waitstatus_to_exitcode(status)
        # For a signal, the exit code that a shell reports.
        self._reaped[pid] = ended if ended >= 0 else 128 - ended
        return False


class _HeldProcess:
    """Implements ports.HeldProcess."""

    def __init__(self, process: DetachedProcess, go_pipe: int) -> None:
        self.process = process
        self._go_pipe = go_pipe

    def release(self) -> None:
        # It may have been killed meanwhile, which `look` reports.
        with suppress(BrokenPipeError):
            os.write(self._go_pipe, _GO)
        os.close(self._go_pipe)

    async def abandon(self) -> None:
        os.close(self._go_pipe)
        await asyncio.to_thread(_reap, self.process.pid)
        with suppress(FileNotFoundError):
            os.unlink(self.process.output)


def _spawn(command: DetachedCommand) -> _HeldProcess:
    read_end, write_end = os.pipe()
    try:
        pid = spawn.start_shell(
            _SUPERVISOR,
            (
                *("perdure-job", command.output + _EXIT, command.directory),
                *(*command.wrapper, command.shell, "-c", command.command),
            ),
            environment=_variables(command.environment),
            files=(
                (os.POSIX_SPAWN_DUP2, read_end, 0),
                (os.POSIX_SPAWN_OPEN, 1, command.output, _NEW_FILE, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ),
        )
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)
    identity = table.read_identity(pid)
    process = DetachedProcess(pid=pid, identity=identity, output=command.output)
    return _HeldProcess(process, write_end)


_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND


def _variables(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    given = os.environ if environment is None else environment
    # If this process is part of a command of another one, the job is not, and outlives both.
    return {name: value for name, value in given.items() if name != orphans.VARIABLE}


def _read_exit_code(process: DetachedProcess) -> int | None:
    try:
        with open(process.output + _EXIT, encoding="ascii") as file:
            return int(file.read(16))
    except (OSError, ValueError):
        return None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
