"""Which connection is closed for another, and which one holds too much that is not read."""

from perdure.core import limits
from perdure.server.http.asgi import Receive, Scope, Send
from perdure.server.http.connections import Connections
from perdure.server.settings import HttpLimits


class Peer:
    """A connection that notes how it was ended."""

    def __init__(self, *, known: bool = True, since: float | None = 0.0) -> None:
        self.deadline = 0.0
        self.is_known = known
        self.waits_since = since
        self.ended = ""

    def give_way(self) -> None:
        self.ended = "gave way"

    def begin_shutdown(self) -> None:
        self.ended = "shut down"

    def expire(self) -> None:
        self.ended = "expired"

    def abort(self) -> None:
        self.ended = "aborted"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """No request comes so far."""


def connections(**bounds: int) -> Connections:
    return Connections(app, HttpLimits(**bounds))


async def test_below_the_limit_all_stay() -> None:
    shared = connections(connections_max=3)
    peers = [Peer() for _ in range(3)]
    assert [shared.admit(peer) for peer in peers] == [True] * 3
    assert [peer.ended for peer in peers] == [""] * 3


async def test_strangers_give_way_before_others_and_the_oldest_first() -> None:
    shared = connections(connections_max=4)
    old, older = Peer(since=2.0), Peer(since=1.0)
    stranger, newer_stranger = Peer(known=False, since=3.0), Peer(known=False, since=4.0)
    for peer in (old, older, newer_stranger, stranger):
        assert shared.admit(peer)
    for expected in (stranger, newer_stranger, older, old):
        assert shared.admit(Peer(since=None))
        assert expected.ended == "gave way"
    last = Peer(known=False, since=9.0)
    assert not shared.admit(last)
    assert last.ended == ""


async def test_one_that_gave_way_does_not_count_while_it_closes() -> None:
    shared = connections(connections_max=1)
    first = Peer()
    assert shared.admit(first)
    assert shared.admit(Peer(since=None))
    shared.forget(first)
    assert not shared.admit(Peer())


async def test_of_those_that_leave_the_first_is_aborted_and_each_only_once() -> None:
    shared = connections(connections_max=1)
    assert shared.admit(Peer(since=None))
    leaving = [Peer() for _ in range(limits.CONNECTIONS_LEAVING_MAX + 3)]
    assert not any(shared.admit(peer) for peer in leaving)
    assert [peer.ended for peer in leaving] == ["aborted"] * 3 + [""] * (len(leaving) - 3)


async def test_the_connection_with_the_most_unread_bytes_is_ended_for_the_others() -> None:
    shared = connections(unsent_bytes_max=100)
    small, large, last = Peer(), Peer(), Peer()
    for peer in (small, large, last):
        assert shared.admit(peer)
    shared.note_unsent(small, 30)
    shared.note_unsent(large, 50)
    shared.note_unsent(large, 60)
    assert large.ended == ""
    shared.note_unsent(last, 20)
    assert (small.ended, large.ended, last.ended) == ("", "aborted", "")
    shared.note_unsent(small, 0)
    shared.note_unsent(last, 100)
    assert last.ended == ""
    shared.forget(last)
    shared.note_unsent(small, 100)
    assert small.ended == ""


async def test_there_is_none_when_the_last_is_forgotten() -> None:
    shared = connections(connections_max=1)
    peer = Peer()
    assert shared.empty.is_set()
    shared.admit(peer)
    assert not shared.empty.is_set()
    shared.forget(peer)
    assert shared.empty.is_set()


async def test_without_descriptors_idle_ones_end_and_the_limit_rises_again_slowly() -> None:
    shared = connections(connections_max=40)
    idle = [Peer(since=number) for number in range(30)]
    for peer in idle:
        assert shared.admit(peer)
    shared.shrink()
    assert [peer.ended for peer in idle] == ["gave way"] * 16 + [""] * 14
    assert shared.admit(Peer(since=None))
    assert idle[16].ended == "gave way"
    shared.relax()
    assert shared.admit(Peer(since=None))
    assert idle[17].ended == ""
