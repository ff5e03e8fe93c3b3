"""Who runs on this machine, as far as ending a child's children takes: members of a process group,
whoever can still write to a pipe or file of ours, and whether a process is the one we knew.

Read from /proc. Where there is none, nobody is found: what left its group then goes on, and can
still not keep anybody waiting. Processes of other users are not seen.
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
"""Where the time of its start stands in what follows the name of a process."""
_WRITABLE: Final = os.O_WRONLY | os.O_RDWR
_DEAD: Final = frozenset("ZX")


def has_members(group: int) -> bool:
    """Whether a process of `group` is still there; one that only waits to be reaped is not."""
    try:
        # The usual answer, without reading the whole table.
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    for process in _processes():
        with suppress(OSError), open(f"{_PROC}/{process}/stat", encoding="latin-1") as file:
            found = _STAT.match(file.read())
            if found and int(found["group"]) == group and found["state"] not in _DEAD:
                return True
    return False


def session(leader: int) -> tuple[int, ...]:
    """The processes of the session that `leader` began, in whichever groups they are."""
    found: list[int] = []
    for process in _processes():
        # It may end at any time while we look.
        with suppress(OSError):
            if os.getsid(process) == leader:
                found.append(process)
    return tuple(found)


def identity(process: int) -> str:
    """What no other process ever has, however numbers are used again; nothing for a dead one."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            boot = file.read().strip()
        with open(f"{_PROC}/{process}/stat", encoding="latin-1") as file:
            # A name may have anything in it, a bracket too.
            state, *fields = file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return ""
    return "" if state in _DEAD else f"{boot}:{fields[_STARTED - 1]}"


def writers(pipe: int) -> tuple[int, ...]:
    """The processes, apart from this one, that hold the writing end of the pipe with that inode."""
    return _writing(f"pipe:[{pipe}]")


def file_writers(path: str) -> tuple[int, ...]:
    """The processes, apart from this one, that have the file at `path` open for writing."""
    return _writing(os.path.realpath(path))


def _writing(target: str) -> tuple[int, ...]:
    others = (process for process in _processes() if process != os.getpid())
    return tuple(process for process in others if _writes_to(process, target))


def _processes() -> Iterator[int]:
    with suppress(OSError):
        for name in os.listdir(_PROC):
            if name.isdecimal():
                yield int(name)


def _writes_to(process: int, target: str) -> bool:
    # It may end, and its files may close, at any time while we look.
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
