"""What the launcher gives up before it becomes a command: capabilities, and system calls."""

from typing import Final

from perdure.host.sandbox import kernel

_KEPT_CAPABILITIES: Final = 0b1101_1011
"""Those about the owners of files and about changing to another user."""
_CAPABILITY_MAX: Final = 63
_CAPABILITY_VERSION: Final = 0x20080522
_NO_NEW_PRIVILEGES: Final = 38
_DROP_BOUNDING: Final = 24
_AMBIENT: Final = 47
_CLEAR_ALL: Final = 4
_INSTRUCTION_BYTES: Final = 8


def give_up(program: bytes) -> None:
    """Drop privileges for good, and refuse the system calls that the seccomp program names."""
    for number in range(_CAPABILITY_MAX + 1):
        # Fails for numbers that this kernel does not know, and without the privilege: then it fails
        # for all that follow, too.
        if not _KEPT_CAPABILITIES >> number & 1 and kernel.prctl(_DROP_BOUNDING, number) < 0:
            break
    kernel.prctl(_AMBIENT, _CLEAR_ALL)
    effective, permitted = kernel.read_capabilities(_CAPABILITY_VERSION)
    kept = (effective & _KEPT_CAPABILITIES, permitted & _KEPT_CAPABILITIES)
    kernel.write_capabilities(_CAPABILITY_VERSION, *kept)
    gain_nothing()
    if program:
        kernel.install_filter(program, _INSTRUCTION_BYTES)


def gain_nothing() -> None:
    """Let no program that is started gain privileges, such as by a set-user-ID bit."""
    kernel.check(kernel.prctl(_NO_NEW_PRIVILEGES, 1), "prctl")
