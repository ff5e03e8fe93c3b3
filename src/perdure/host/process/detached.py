"""Commands that outlive this process, behind the DetachedProcesses port.

A small shell program stands between us and the command. It waits until we say so, and ends if we
die before; runs the command with its output in a file; keeps the exit code in a file beside it; and
takes everything that is left of its group with it. So a command never runs without our knowing of
it, and how it ended can be read by whoever comes later.

Invariant: a signal is only ever sent to a process whose identity is that of the one we started, or
that writes to its output file. Without /proc nothing can be known of another process's commands.
"""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from perdure.core.session.job import DetachedProcess, Sighting
from perdure.host.process import spawn, table
from perdure.ports import DetachedCommand

_EXIT: Final = ".exit"
_GO: Final = b"go\n"
# The traps keep it alive when its group is told to end, and are not handed on to the command. The
# exit code appears whole or not at all; where it cannot be kept, only we, its parent, can learn it.
# What the last line ends includes this very program.
_SUPERVISOR: Final = """\
IFS= read -r go || exit 125
trap : HUP INT QUIT TERM
cd -- "$2" && "$1" -c "$3" </dev/null
code=$?
printf '%s\\n' "$code" >"$4.part" && mv -f -- "$4.part" "$4" || exit "$code"
kill -s KILL 0
"""


class LocalDetached:
    """Adapter of ports.DetachedProcesses."""

    def __init__(self) -> None:
        self._children: set[int] = set()
        """Processes that we started and must reap."""
        self._reaped: dict[int, int] = {}
        """The exit codes of those that may not have kept it themselves."""

    async def start(self, command: DetachedCommand) -> "_Held":
        held = await asyncio.to_thread(_spawn, command)
        self._children.add(held.process.pid)
        return held

    def look(self, process: DetachedProcess) -> Sighting:
        # In this order: the exit code of one that is seen dead has been kept already.
        alive = self._is_alive(process)
        code = _kept_code(process)
        if code is None and not alive:
            code = self._reaped.get(process.pid)
        return Sighting(alive=alive, exit_code=code, output_bytes=_size(process.output))

    def terminate(self, process: DetachedProcess) -> None:
        if self._is_alive(process):
            _signal_group(process.pid, signal.SIGTERM)

    async def kill(self, process: DetachedProcess) -> None:
        if self._is_alive(process):
            _signal_group(process.pid, signal.SIGKILL)
        for left in await asyncio.to_thread(table.file_writers, process.output):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(left, signal.SIGKILL)

    async def clean(self, process: DetachedProcess, *, output_bytes_max: int) -> None:
        self._reaped.pop(process.pid, None)
        for left in (process.output + _EXIT, f"{process.output}{_EXIT}.part"):
            with suppress(FileNotFoundError):
                os.unlink(left)
        if _size(process.output) > output_bytes_max:
            await asyncio.to_thread(os.truncate, process.output, output_bytes_max)

    def _is_alive(self, process: DetachedProcess) -> bool:
        if process.pid not in self._children:
            return bool(process.identity) and (table.identity(process.pid) == process.identity)
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            self._children.discard(process.pid)
            return False
        if pid == 0:
            return True
        self._children.discard(pid)
        ended = os.waitstatus_to_exitcode(status)
        # Ended by a signal: the number that a shell would report.
        self._reaped[pid] = ended if ended >= 0 else 128 - ended
        return False


class _Held:
    """Implements ports.HeldProcess."""

    def __init__(self, process: DetachedProcess, word: int) -> None:
        self.process = process
        self._word = word

    def release(self) -> None:
        # It may have been killed meanwhile; whoever looks at it will see.
        with suppress(BrokenPipeError):
            os.write(self._word, _GO)
        os.close(self._word)

    async def abandon(self) -> None:
        os.close(self._word)
        await asyncio.to_thread(_reap, self.process.pid)
        with suppress(FileNotFoundError):
            os.unlink(self.process.output)


def _spawn(command: DetachedCommand) -> _Held:
    hears, word = os.pipe()
    try:
        pid = spawn.shell(
            _SUPERVISOR,
            (
                "perdure-job",
                *(command.shell, command.directory, command.command, command.output + _EXIT),
            ),
            environment=_variables(command.environment),
            files=(
                (os.POSIX_SPAWN_DUP2, hears, 0),
                (os.POSIX_SPAWN_OPEN, 1, command.output, _NEW_FILE, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ),
        )
    except BaseException:
        os.close(word)
        raise
    finally:
        os.close(hears)
    identity = table.identity(pid)
    return _Held(DetachedProcess(pid=pid, identity=identity, output=command.output), word)


_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND


def _variables(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment


def _kept_code(process: DetachedProcess) -> int | None:
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


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
