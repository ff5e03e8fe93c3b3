"""One operation of the HTTP contract, as data.

An Endpoint says how a request is spelled, what an answer looks like and which failures are part
of the promise. It does not say how the answer is found: handlers are joined to endpoints by
`operation_id` in the server, and methods in the client. Both sides read this one table.
"""

from typing import Final, Literal

from perdure.schema.codec import JsonValue, Payload
from perdure.schema.errors import DomainError, InvalidRequestError, StorageError, UnauthorizedError
from perdure.schema.value import Value

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

Scope = Literal["session", "location", "none"]
"""`session`: the path names a Session that must exist. `location`: the request names a Location."""

SuccessKind = Literal[
    "data",  # {"data": X}
    "location_data",  # {"location": LocationInfo, "data": X}
    "bare",  # X
    "page",  # {"data": [X], "cursor": {"previous"?, "next"?}}
    "history",  # {"data": [X], "hasMore": bool}
    "no_content",  # 204
    "durable_stream",  # server-sent events, resumable by `seq`
    "live_stream",  # server-sent events, seen if you listen
]

STREAMS: Final[frozenset[SuccessKind]] = frozenset({"durable_stream", "live_stream"})
REFUSALS: Final[tuple[type[DomainError], ...]] = (InvalidRequestError, UnauthorizedError)
"""Every operation may answer these."""


class Success(Value):
    kind: SuccessKind
    type: JsonValue = None
    """The type of X: a class, a union or a generic alias. None where there is no X."""


class Endpoint(Value, kw_only=True):
    operation_id: str
    method: Method
    path: str
    group: str
    success: Success
    scope: Scope = "none"
    params: type[Payload] | None = None
    """Path parameters with a shape of their own; the Session id is checked before them."""
    query: type[Payload] | None = None
    body: type[Payload] | None = None
    body_optional: bool = False
    """An empty body means `{}`."""
    errors: tuple[type[DomainError], ...] = REFUSALS

    @property
    def failures(self) -> tuple[type[DomainError], ...]:
        """Every failure that is part of the promise: whatever writes may find the disk full."""
        return self.errors if self.method == "GET" else (*self.errors, StorageError)

    @property
    def streams(self) -> bool:
        return self.success.kind in STREAMS
