"""Limits on the requests of one client and on the streams of all clients together.

A request counts against its client from dispatch until the last byte of its answer is sent. A
stream lasts long and costs little, so it counts against the server's limit of streams instead. A
request over a limit is refused with 429; none is queued. Callers in this process are not counted.

Invariant: a slot that was taken is released exactly once, however the request ends.
"""

from typing import Self

from perdure.protocol.errors import TooManyRequestsError
from perdure.schema.value import State


class Slot(State):
    """What one request under way takes of the limits, until its scope ends."""

    limits: "ClientLimits"
    client: str
    is_stream: bool = False

    def count_as_stream(self) -> None:
        """Raises TooManyRequestsError when the server has as many streams as it may have."""
        self.limits.move_to_streams(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.limits.release(self)


class ClientLimits:
    def __init__(self, *, requests_per_client_max: int, streams_max: int) -> None:
        self._requests_max = requests_per_client_max
        self._streams_max = streams_max
        self._requests: dict[str, int] = {}
        self._streams = 0

    def take_slot(self, client: str) -> Slot:
        """Raises TooManyRequestsError when this client has as many requests as it may have."""
        held = self._requests.get(client, 0)
        if held >= self._requests_max:
            raise TooManyRequestsError(f"More than {self._requests_max} requests at once")
        self._requests[client] = held + 1
        return Slot(self, client)

    def release(self, slot: Slot) -> None:
        if slot.is_stream:
            self._streams -= 1
        else:
            self._release(slot.client)

    def move_to_streams(self, slot: Slot) -> None:
        if self._streams >= self._streams_max:
            raise TooManyRequestsError(f"More than {self._streams_max} streams at once")
        self._streams += 1
        slot.is_stream = True
        self._release(slot.client)

    def _release(self, client: str) -> None:
        held = self._requests[client] - 1
        if held:
            self._requests[client] = held
        else:
            del self._requests[client]
