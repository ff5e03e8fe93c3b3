"""Identifiers of the running system: unique, in order of making, newest Session first."""

from perdure.host.clock import SystemClock
from perdure.host.ids import SystemIds
from perdure.schema import ids
from perdure.testing import ManualClock


def test_ids_made_in_one_instant_are_unique_and_sorted() -> None:
    source = SystemIds(ManualClock())
    made = [source.event() for _ in range(20_000)]
    assert len(set(made)) == len(made)
    assert made == sorted(made)


def test_the_newest_session_sorts_first() -> None:
    source = SystemIds(SystemClock())
    made = [source.session() for _ in range(100)]
    assert made == sorted(made, reverse=True)


def test_a_clock_that_runs_backwards_does_not_repeat_ids() -> None:
    clock = ManualClock()
    source = SystemIds(clock)
    before = source.message()
    clock.set_millis(clock.now_millis() - 60_000)
    assert source.message() > before


def test_every_kind_is_well_formed() -> None:
    source = SystemIds(SystemClock())
    assert ids.well_formed("ses", source.session())
    assert ids.well_formed("msg", source.message())
    assert ids.well_formed("evt", source.event())
    assert ids.well_formed("per", source.permission())
    assert source.named("tool").startswith("tool_")


def test_two_sources_do_not_meet() -> None:
    clock = ManualClock()
    one, other = SystemIds(clock), SystemIds(clock)
    assert not {one.event() for _ in range(1000)} & {other.event() for _ in range(1000)}
