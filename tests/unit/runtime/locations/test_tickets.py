"""Tickets to a terminal: for one place, once, and not for long."""

from itertools import count

import pytest

from perdure.core import limits
from perdure.runtime.locations.terminals import Tickets
from perdure.schema.ids import PtyID
from perdure.schema.location import LocationRef

HERE = LocationRef("/here")
ONE = PtyID("pty_one")


class Office:
    def __init__(self) -> None:
        numbers = count()
        self.now = 0.0
        self.tickets = Tickets(
            lambda size: next(numbers).to_bytes(size, "big"), seconds=lambda: self.now
        )

    def issue(self) -> str:
        issued = self.tickets.issue(HERE, ONE)
        assert issued.ticket not in repr(issued)
        return issued.ticket


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_ticket_is_good_once(office: Office) -> None:
    ticket = office.issue()
    assert office.tickets.redeem(HERE, ONE, ticket)
    assert not office.tickets.redeem(HERE, ONE, ticket)


@pytest.mark.parametrize(
    ("ref", "pty_id"), [(LocationRef("/there"), ONE), (HERE, PtyID("pty_two"))]
)
def test_a_ticket_for_another_place_is_refused_and_used_up(
    office: Office, ref: LocationRef, pty_id: PtyID
) -> None:
    ticket = office.issue()
    assert not office.tickets.redeem(ref, pty_id, ticket)
    assert not office.tickets.redeem(HERE, ONE, ticket)


def test_a_ticket_ends_with_its_minute(office: Office) -> None:
    early, late = office.issue(), office.issue()
    office.now = limits.PTY_TICKET_SECONDS - 0.001
    assert office.tickets.redeem(HERE, ONE, early)
    office.now = limits.PTY_TICKET_SECONDS
    assert not office.tickets.redeem(HERE, ONE, late)


@pytest.mark.parametrize("ticket", ["", "x", "\ud800", "f" * 64, "x" * 1_000_000])
def test_what_was_never_issued_is_refused(office: Office, ticket: str) -> None:
    issued = office.issue()
    assert not office.tickets.redeem(HERE, ONE, ticket)
    assert office.tickets.redeem(HERE, ONE, issued)


def test_only_so_many_are_out_at_a_time(office: Office) -> None:
    first = office.issue()
    others = [office.issue() for _ in range(limits.PTY_TICKETS_MAX)]
    assert not office.tickets.redeem(HERE, ONE, first)
    assert all(office.tickets.redeem(HERE, ONE, ticket) for ticket in others)
