"""The process table: members of a group or session, writers of a pipe or file, and identities.

Read from /proc. Without it no process is found: a process that left its group then keeps running,
but cannot delay a caller. Processes of other users are not visible.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

_PROC: Final = "/proc"
_STAT: Final = re.compile(r"\d+ \(.*\) (?P<state>\S) \d+ (?P<group>\d+) ", re.DOTALL)
_BOOT: Final = f"{_PROC}/sys/kernel/random/boot_id"
_STARTED: Final = 19
"""Index of the start time among the fields after the process name."""
_WRITABLE: Final = os.O_WRONLY | os.O_RDWR
_DEAD: Final = frozenset("ZX")


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
    try:
        with open(_BOOT, encoding="ascii") as file:
            boot = file.read().strip()
        with open(f"{_PROC}/{process}/stat", encoding="latin-1") as file:
            # A process name may contain any character, even a bracket.
            state, *fields = file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in _DEAD else f"{boot}:{fields[_STARTED - 1]}"


def list_pipe_writers(pipe: int) -> tuple[int, ...]:
    """The other processes that hold the write end of the pipe with that inode."""
    return _list_writers(f"pipe:[{pipe}]")


def list_file_writers(path: str) -> tuple[int, ...]:
    """The other processes that have the file at `path` open for writing."""
    return _list_writers(os.path.realpath(path))


def _list_writers(target: str) -> tuple[int, ...]:
    others = (process for process in _processes() if process != os.getpid())
    return tuple(process for process in others if _writes_to(process, target))


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
