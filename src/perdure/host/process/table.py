"""The process table: its rows, members of a group or session, writers of a pipe, and identities.

Read from /proc. Without it no process is found: a process that left its group then keeps running,
but cannot delay a caller. Processes of other users are not visible.
"""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

_PROC: Final = "/proc"
_STAT: Final = lazy_pattern(r"\d+ \(.*\) (?P<state>\S) \d+ (?P<group>\d+) ", re.DOTALL)
_BOOT: Final = f"{_PROC}/sys/kernel/random/boot_id"
_STATE: Final = 0
_PARENT: Final = 1
_SESSION: Final = 3
_STARTED: Final = 19
"""Indexes of fields of a row, after the process name."""
_WRITABLE: Final = os.O_WRONLY | os.O_RDWR
_DEAD: Final = frozenset("ZX")


class ProcessRow(Value):
    """A running process: the pid and the start time are its own, the rest may change."""

    pid: int
    program: str
    parent: int
    session: int
    started: str


def list_rows() -> tuple[ProcessRow, ...]:
    """All running processes; zombies do not count."""
    return tuple(row for process in _processes() if (row := _read_row(process)) is not None)


def is_same(row: ProcessRow, other: ProcessRow | None) -> bool:
    """Whether both are of one process: a reused pid has another start time."""
    return other is not None and (row.pid, row.started) == (other.pid, other.started)


def identify(row: ProcessRow) -> str:
    """The identity of the process: see `read_identity`."""
    return f"{_read_boot()}:{row.started}"


def send_signal(row: ProcessRow, number: signal.Signals) -> None:
    """Send a signal to that process and to no other; no-op if it is gone or not ours."""
    with suppress(OSError):
        # The descriptor stays with the process; the row tells whether it is the one of then.
        process = os.pidfd_open(row.pid)
        try:
            if is_same(row, _read_row(row.pid)):
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group; no-op if it is gone or not ours.

    Group 0 would be that of this process, and group 1 every process of the machine.
    """
    if group <= 1:
        raise ValueError(f"{group} is not the group of a child")
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def read_variable(process: int, name: str) -> str:
    """A variable of the environment that a process was started with; empty if unknown."""
    try:
        with open(f"{_PROC}/{process}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return ""
    start = os.fsencode(f"{name}=")
    found = (variable for variable in variables if variable.startswith(start))
    return os.fsdecode(next(found, start)[len(start) :])


def has_members(group: int) -> bool:
    """Whether `group` has a running process; zombies do not count."""
    try:
        # Usually decides without reading the whole table.
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    for process in _processes():
        with suppress(OSError), open(f"{_PROC}/{process}/stat", encoding="latin-1") as file:
            found = _STAT.match(file.read())
            if found and int(found["group"]) == group and found["state"] not in _DEAD:
                return True
    return False


def list_session(leader: int) -> tuple[int, ...]:
    """The processes of the session of `leader`, in all its groups."""
    found: list[int] = []
    for process in _processes():
        # A process may end at any time.
        with suppress(OSError):
            if os.getsid(process) == leader:
                found.append(process)
    return tuple(found)


def read_identity(process: int) -> str:
    """An identity that is unique even when pids are reused; empty for a dead process."""
    row = _read_row(process)
    return "" if row is None else identify(row)


def list_pipe_writers(pipe: int) -> tuple[int, ...]:
    """The other processes that hold the write end of the pipe with that inode."""
    return _list_writers(f"pipe:[{pipe}]")


def list_file_writers(path: str) -> tuple[int, ...]:
    """The other processes that have the file at `path` open for writing."""
    return _list_writers(os.path.realpath(path))


def _list_writers(target: str) -> tuple[int, ...]:
    others = (process for process in _processes() if process != os.getpid())
    return tuple(process for process in others if _writes_to(process, target))


def _read_row(process: int) -> ProcessRow | None:
    try:
        with open(f"{_PROC}/{process}/stat", encoding="latin-1") as file:
            # A process name may contain any character, even a bracket.
            name, _, rest = file.read().rpartition(")")
    except OSError:
        return None
    fields = rest.split()
    if not fields or fields[_STATE] in _DEAD:
        return None
    program = name.partition("(")[2]
    return ProcessRow(
        process, program, int(fields[_PARENT]), int(fields[_SESSION]), fields[_STARTED]
    )


@cache
def _read_boot() -> str:
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _processes() -> Iterator[int]:
    with suppress(OSError):
        for name in os.listdir(_PROC):
            if name.isdecimal():
                yield int(name)


def _writes_to(process: int, target: str) -> bool:
    # The process may end, and its files may close, at any time.
    with suppress(OSError):
        for name in os.listdir(f"{_PROC}/{process}/fd"):
            with suppress(OSError):
                if os.readlink(f"{_PROC}/{process}/fd/{name}") == target and _is_writable(
                    process, name
                ):
                    return True
    return False


def _is_writable(process: int, descriptor: str) -> bool:
    with open(f"{_PROC}/{process}/fdinfo/{descriptor}", encoding="ascii") as file:
        flags = next((line for line in file if line.startswith("flags:")), "flags: 0")
    return bool(int(flags.split()[1], 8) & _WRITABLE)
