"""How much of this server one client, and all streams together, may hold at a time.

A request counts against its client from the moment it may be answered until its last byte is sent.
A stream is long-lived and cheap, so it counts with the other streams of the server instead. Whoever
is one too many is told to come back; nobody waits in line. Callers in this process are not counted.

Invariant: a place that was taken is given back exactly once, however the request ends.
"""

from collections.abc import Generator
from contextlib import contextmanager

from perdure.protocol.errors import TooManyRequestsError
from perdure.schema.value import State


class Slot(State):
    """One request's part of the crowd."""

    crowd: "ClientLimits"
    client: str
    streams: bool = False

    def count_as_stream(self) -> None:
        """Raises TooManyRequestsError when there are as many streams as there may be."""
        self.crowd.move_to_streams(self)


class ClientLimits:
    def __init__(self, *, requests_per_client_max: int, streams_max: int) -> None:
        self._requests_max = requests_per_client_max
        self._streams_max = streams_max
        self._requests: dict[str, int] = {}
        self._streams = 0

    @contextmanager
    def place(self, client: str) -> Generator[Slot]:
        """Raises TooManyRequestsError when this client has as many requests as it may have."""
        held = self._requests.get(client, 0)
        if held >= self._requests_max:
            raise TooManyRequestsError(f"More than {self._requests_max} requests at once")
        self._requests[client] = held + 1
        taken = Slot(self, client)
        try:
            yield taken
        finally:
            if taken.streams:
                self._streams -= 1
            else:
                self._release(client)

    def move_to_streams(self, place: Slot) -> None:
        if self._streams >= self._streams_max:
            raise TooManyRequestsError(f"More than {self._streams_max} streams at once")
        self._streams += 1
        place.streams = True
        self._release(place.client)

    def _release(self, client: str) -> None:
        held = self._requests[client] - 1
        if held:
            self._requests[client] = held
        else:
            del self._requests[client]
