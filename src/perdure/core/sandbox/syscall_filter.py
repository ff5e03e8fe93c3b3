"""The system calls that a command in the sandbox cannot make, as a seccomp program.

Refused are calls that change mounts or namespaces, reach kernel keys, load code into the kernel or
open files by handle, or change limits and memory of other processes; io_uring, which would make
system calls unseen; sockets of other families than
the given ones (a local socket leads to programs outside); and input typed into a terminal.

Invariant: a machine or a calling convention that is not known is refused as a whole.
"""

import struct
from collections.abc import Collection
from typing import Final

INTERNET: Final = (2, 10, 16)
"""IPv4, IPv6, and netlink, by which programs list network interfaces."""
NETLINK: Final = (16,)

_NAMES: Final = (
    *("mount", "umount2", "pivot_root", "setns", "unshare", "chroot", "keyctl", "add_key"),
    *("request_key", "bpf", "perf_event_open", "userfaultfd", "kexec_load", "init_module"),
    *("finit_module", "delete_module", "reboot", "swapon", "swapoff", "acct", "quotactl"),
    *("syslog", "settimeofday", "clock_settime", "adjtimex", "open_by_handle_at"),
    *("process_vm_readv", "process_vm_writev", "kexec_file_load", "migrate_pages", "move_pages"),
)
_X86_64: Final = (
    *(165, 166, 155, 308, 272, 161, 250, 248, 249, 321, 298, 323, 246, 175, 313, 176, 169, 167),
    *(168, 163, 179, 103, 164, 227, 159, 304, 310, 311, 320, 256, 279),
)
_AARCH64: Final = (
    *(40, 39, 41, 268, 97, 51, 219, 217, 218, 280, 241, 282, 104, 105, 273, 106, 142, 224),
    *(225, 89, 60, 116, 170, 112, 171, 265, 270, 271, 294, 238, 239),
)
_EVERYWHERE: Final = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442, 443, 448, 467)
"""io_uring, pidfd_getfd, memory of other processes, and the newer calls for mounts and quotas: one
number on every machine."""


class _Machine:
    def __init__(
        self,
        arch: int,
        refused: tuple[int, ...],
        *,
        clone: int,
        socket: int,
        ioctl: int,
        prlimit: int,
        by_process: tuple[int, ...],
        by_kind: tuple[int, ...],
    ) -> None:
        self.arch = arch
        self.refused = refused
        self.clone = clone
        self.socket = socket
        self.ioctl = ioctl
        self.prlimit = prlimit
        self.by_process = by_process
        """Calls about the scheduling of the process in their first argument."""
        self.by_kind = by_kind
        """The same with a kind in the first argument and the process in the second."""


_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        _X86_64,
        clone=56,
        socket=41,
        ioctl=16,
        prlimit=302,
        by_process=(142, 144, 203, 314),
        by_kind=(141, 251),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        _AARCH64,
        clone=220,
        socket=198,
        ioctl=29,
        prlimit=261,
        by_process=(118, 119, 122, 274),
        by_kind=(140, 30),
    ),
}
_CLONE3: Final = 435
_NEW_NAMESPACES: Final = 0x7E020080
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
_OTHER_CONVENTION: Final = 0x40000000

_EPERM: Final = 1
_ENOSYS: Final = 38
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000
_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_HAS_BITS: Final = 0x45
_RETURN: Final = 0x06
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_FIRST_ARGUMENT: Final = 16
_SECOND_ARGUMENT: Final = 24

Instruction = tuple[int, int, int, int]
"""Code, instructions to skip if true and if false, and the operand."""


def make_filter(
    machine: str, families: Collection[int], *, sees_others: bool = False
) -> bytes | None:
    """The program for a machine as `uname` names it; None for one that is not known.

    `sees_others` is for a wall without a namespace of processes: then a command may change the
    scheduling of the calling thread only.
    """
    known = _MACHINES.get(machine)
    if known is None:
        return None
    steps = [*_instructions(known, families, sees_others=sees_others), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _instructions(
    machine: _Machine, families: Collection[int], *, sees_others: bool
) -> list[Instruction]:
    steps: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine.arch),
        _refuse(_EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_CONVENTION),
        _refuse(_ENOSYS),
    ]
    for number in (*machine.refused, *_EVERYWHERE):
        steps += [(_EQUAL, 0, 1, number), _refuse(_EPERM)]
    # Its flags are behind a pointer. The C library falls back to clone.
    steps += [(_EQUAL, 0, 1, _CLONE3), _refuse(_ENOSYS)]
    steps += _checked(
        machine.clone, _FIRST_ARGUMENT, [(_HAS_BITS, 0, 1, _NEW_NAMESPACES), _refuse(_EPERM)]
    )
    steps += _checked(machine.ioctl, _SECOND_ARGUMENT, _refuse_any(_TERMINAL_INPUT))
    steps += _checked(machine.prlimit, _FIRST_ARGUMENT, _ONLY_ITSELF)
    if sees_others:
        for number in machine.by_process:
            steps += _checked(number, _FIRST_ARGUMENT, _ONLY_ITSELF)
        for number in machine.by_kind:
            steps += _checked(number, _SECOND_ARGUMENT, _ONLY_ITSELF)
    allowed = [
        step for family in families for step in ((_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW))
    ]
    steps += _checked(machine.socket, _FIRST_ARGUMENT, [*allowed, _refuse(_EPERM)])
    return steps


def _checked(number: int, argument: int, then: list[Instruction]) -> list[Instruction]:
    """Run `then` on an argument of the call, and go on with the number of the call."""
    block: list[Instruction] = [(_LOAD, 0, 0, argument), *then, (_LOAD, 0, 0, _NUMBER)]
    return [(_EQUAL, 0, len(block), number), *block]


def _refuse_any(values: Collection[int]) -> list[Instruction]:
    return [step for value in values for step in ((_EQUAL, 0, 1, value), _refuse(_EPERM))]


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _REFUSE | error)


# Zero is the caller; other processes of the user may be outside.
_ONLY_ITSELF: Final[list[Instruction]] = [(_EQUAL, 1, 0, 0), _refuse(_EPERM)]
