"""Calls of the Linux kernel that Python does not offer. Each raises OSError if it fails.

Modules that the launcher uses import nothing but the standard library, and little of that, because
each command waits for them.
"""

import ctypes
import os
import signal
from typing import Final

NEW_MOUNTS: Final = 0x00020000
NEW_IPC: Final = 0x08000000
NEW_USERS: Final = 0x10000000
NEW_PIDS: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000

READ_ONLY: Final = 1
NO_SETUID: Final = 2
NO_DEVICES: Final = 4
NO_EXECUTION: Final = 8
PRIVATE: Final = 0x44000

_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_OPENAT2: Final = 437
_MOUNT_SETATTR: Final = 442
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446

_HERE: Final = -100
_RECURSIVE: Final = 0x8000
_EMPTY_PATH: Final = 0x1000
_CLONE: Final = 1
_BETWEEN_DESCRIPTORS: Final = 0x4 | 0x40
_WITHOUT_LINKS: Final = 0x4
_NOTHING_THERE: Final = (2, 20)

_INTERNET: Final = 2
_DATAGRAM: Final = 2
_SET_FLAGS: Final = 0x8914
_UP_AND_RUNNING: Final = 0x1 | 0x40
_FOR_PARENT: Final = 0x8000
_SET_SECCOMP: Final = 22
_FILTER_MODE: Final = 2

_libc: Final = ctypes.CDLL(None, use_errno=True)


def check(result: int, subject: str) -> int:
    """The result of a call, if it is not an error."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), subject)
    return result


def unshare(kinds: int) -> None:
    check(_libc.unshare(kinds), "unshare")


def prctl(option: int, first: int, second: int = 0) -> int:
    """The result, which is below 0 if it failed."""
    return _libc.prctl(option, *(ctypes.c_ulong(each) for each in (first, second, 0, 0)))


def open_path(path: str) -> int | None:
    """A descriptor of a path, which must not contain a link; None if there is nothing.

    Another process may put a link at any part of the path at any time.
    """
    how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _WITHOUT_LINKS)
    size = ctypes.sizeof(how)
    opened = _libc.syscall(_OPENAT2, _HERE, os.fsencode(path), ctypes.byref(how), size)
    if opened < 0 and ctypes.get_errno() in _NOTHING_THERE:
        return None
    return check(opened, path)


def clone_tree(place: int, *, whole: bool = True) -> int:
    """A detached copy of the mount at a descriptor, and of the mounts below it if `whole`."""
    flags = _CLONE | os.O_CLOEXEC | _EMPTY_PATH | (_RECURSIVE if whole else 0)
    return check(_libc.syscall(_OPEN_TREE, place, b"", flags), "open_tree")


def attach_tree(tree: int, place: int) -> None:
    """Put a detached copy over what a descriptor names."""
    check(_libc.syscall(_MOVE_MOUNT, tree, b"", place, b"", _BETWEEN_DESCRIPTORS), "move_mount")


def restrict_tree(tree: int, attributes: int) -> None:
    """Set attributes of all mounts below a descriptor of a mount."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    size, flags = ctypes.sizeof(wanted), _RECURSIVE | _EMPTY_PATH
    done = _libc.syscall(_MOUNT_SETATTR, tree, b"", flags, ctypes.byref(wanted), size)
    check(done, "mount_setattr")


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    source, place, given = kind.encode(), os.fsencode(target), options.encode()
    check(_libc.mount(source, place, source, ctypes.c_ulong(flags), given), target)


def start_loopback() -> None:
    """Bring up the loopback interface of a new network namespace."""
    made = check(_libc.socket(_INTERNET, _DATAGRAM, 0), "socket")
    flags = _UP_AND_RUNNING.to_bytes(2, "little")
    request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + flags, 40)
    try:
        check(_libc.ioctl(made, ctypes.c_ulong(_SET_FLAGS), request), "the loopback interface")
    finally:
        os.close(made)


def landlock_version() -> int:
    return check(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1), "landlock")


def landlock_rules(fields: tuple[int, ...]) -> int:
    """A descriptor of a new set of rules."""
    attributes = (ctypes.c_uint64 * len(fields))(*fields)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    return check(_libc.syscall(_CREATE_RULESET, attributes, size, 0), "landlock")


def landlock_allow(rules: int, rule: bytes, path: str) -> None:
    check(_libc.syscall(_ADD_RULE, rules, 1, rule, 0), path)


def landlock_enforce(rules: int) -> None:
    check(_libc.syscall(_RESTRICT_SELF, rules, 0), "landlock")


def read_capabilities(version: int) -> tuple[int, int]:
    """The lower halves of the effective and the permitted capabilities."""
    header, sets = (ctypes.c_uint32 * 2)(version, 0), (ctypes.c_uint32 * 6)()
    check(_libc.capget(header, sets), "capget")
    return sets[0], sets[1]


def write_capabilities(version: int, effective: int, permitted: int) -> None:
    header = (ctypes.c_uint32 * 2)(version, 0)
    sets = (ctypes.c_uint32 * 6)(effective, permitted)
    check(_libc.capset(header, sets), "capset")


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def install_filter(program: bytes, instruction_bytes: int) -> None:
    """Install a seccomp program."""
    made = _Filter(len(program) // instruction_bytes, program)
    check(_libc.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(made), 0, 0), "seccomp")


def clone_for_parent(number: int) -> int:
    """Fork; the new process is a child of this one's parent. `number` is that of the call.

    The C library does not hear of it, so this process must have one thread.
    """
    words = (_FOR_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    return check(_libc.syscall(number, *(ctypes.c_ulong(word) for word in words)), "clone")
