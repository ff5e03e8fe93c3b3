"""How many connections a limit of open files leaves room for."""

import errno

import pytest

from perdure.core import limits
from perdure.host import descriptors


@pytest.mark.parametrize(
    ("allowed", "connections"),
    [
        (1_048_576, limits.CONNECTIONS_MAX),
        (8_192, limits.CONNECTIONS_MAX),
        (4_096, 3_072),
        (1_024, 768),
        (256, 128),
        (160, 40),
        (64, 16),
        (2, 1),
    ],
)
def test_connections_leave_descriptors_for_the_rest(allowed: int, connections: int) -> None:
    assert descriptors.connections_max(allowed) == connections


def test_the_limit_of_this_process_is_taken_if_none_is_given() -> None:
    assert 1 <= descriptors.connections_max() <= limits.CONNECTIONS_MAX


def test_only_a_full_table_of_open_files_is_exhaustion() -> None:
    exhausted = [
        number for number in errno.errorcode if descriptors.are_exhausted(OSError(number, ""))
    ]
    assert sorted(exhausted) == sorted([errno.EMFILE, errno.ENFILE])
