"""The seccomp program, run by a small interpreter of its instructions."""

import struct

import pytest

from perdure.core.sandbox import syscall_filter

ALLOWED = 0x7FFF0000
REFUSED = 0x00050001
UNKNOWN = 0x00050026
X86_64 = 0xC000003E
AARCH64 = 0xC00000B7


def answer(program: bytes, number: int, *arguments: int, arch: int = X86_64) -> int:
    """What the program says to a call."""
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, arch, 0, *padded)
    steps = list(struct.iter_unpack("=HBBI", program))
    value = at = 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x06:
                return operand
            case _:
                holds = {0x15: value == operand, 0x35: value >= operand}.get(
                    code, bool(value & operand)
                )
                at += if_true if holds else if_false


@pytest.fixture
def program() -> bytes:
    made = syscall_filter.make_filter("x86_64", syscall_filter.INTERNET)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ((0, 3), ALLOWED),
        ((59,), ALLOWED),
        ((165,), REFUSED),
        ((272, 0x10000000), REFUSED),
        ((56, 0x00010F00), ALLOWED),
        ((56, 0x10000000), REFUSED),
        ((435,), UNKNOWN),
        ((425,), REFUSED),
        ((41, 2), ALLOWED),
        ((41, 10), ALLOWED),
        ((41, 1), REFUSED),
        ((41, 40), REFUSED),
        ((53, 1), ALLOWED),
        ((16, 0, 0x5401), ALLOWED),
        ((16, 0, 0x5412), REFUSED),
        ((0x40000000 | 59,), UNKNOWN),
    ],
)
def test_calls_are_refused_by_number_and_argument(
    program: bytes, call: tuple[int, ...], expected: int
) -> None:
    assert answer(program, *call) == expected


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_scheduling_of_others_is_refused_where_they_are_seen(machine: str) -> None:
    arch = {"x86_64": X86_64, "aarch64": AARCH64}[machine]
    by_process = {"x86_64": (142, 144, 203, 314), "aarch64": (118, 119, 122, 274)}[machine]
    by_kind = {"x86_64": (141, 251), "aarch64": (140, 30)}[machine]
    limit = {"x86_64": 302, "aarch64": 261}[machine]
    alone = syscall_filter.make_filter(machine, ())
    among = syscall_filter.make_filter(machine, (), sees_others=True)
    assert alone is not None
    assert among is not None
    for number in by_process:
        assert answer(among, number, 0, arch=arch) == ALLOWED
        assert answer(among, number, 77, arch=arch) == REFUSED
        assert answer(alone, number, 77, arch=arch) == ALLOWED
    for number in by_kind:
        assert answer(among, number, 1, 0, arch=arch) == ALLOWED
        assert answer(among, number, 0, 77, arch=arch) == REFUSED
    for program in (alone, among):
        assert answer(program, limit, 0, arch=arch) == ALLOWED
        assert answer(program, limit, 77, arch=arch) == REFUSED


def test_another_machine_is_refused_as_a_whole(program: bytes) -> None:
    assert answer(program, 0, arch=AARCH64) == REFUSED
    assert syscall_filter.make_filter("sparc", ()) is None


def test_without_families_no_socket_is_made() -> None:
    made = syscall_filter.make_filter("aarch64", ())
    assert made is not None
    assert answer(made, 198, 2, arch=AARCH64) == REFUSED
    assert answer(made, 199, 1, arch=AARCH64) == ALLOWED
