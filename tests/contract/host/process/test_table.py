"""Signals reach the processes that were meant and no others."""

import signal

import pytest

from perdure.host.process import table


@pytest.mark.parametrize("group", [-5, -1, 0, 1])
def test_a_number_that_stands_for_many_processes_is_no_group(group: int) -> None:
    # A signal that does no harm if the check is missing.
    with pytest.raises(ValueError, match="is not the group of a child"):
        table.signal_group(group, signal.SIGCONT)
