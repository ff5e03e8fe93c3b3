"""One operation of the HTTP contract, as data.

An Endpoint says how a request is spelled, what an answer looks like and which failures are part
of the promise. It does not say how the answer is found: handlers are joined to endpoints by
`operation_id` in the server, and methods in the client. Both sides read this one table.
"""

from typing import Final, Literal

from perdure.protocol.errors import TooManyRequestsError
from perdure.schema.codec import JsonValue, Payload
from perdure.schema.errors import (
    DomainError,
    ForbiddenError,
    InvalidRequestError,
    PayloadTooLargeError,
    StorageError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
)
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
    "content",  # the bytes of a file, or a part of them
    "websocket",  # a conversation, once the connection was upgraded
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
        """Every failure that is part of the promise, with those that follow from the spelling.

        Anybody may be turned away or be one too many, a body may be too large or of another type,
        and whatever writes may find the disk full.
        """
        found = [*self.errors, ForbiddenError, TooManyRequestsError]
        if self.body is not None:
            found += [PayloadTooLargeError, UnsupportedMediaTypeError]
        if self.method != "GET":
            found.append(StorageError)
        return tuple(dict.fromkeys(found))

    @property
    def upgrades(self) -> bool:
        return self.success.kind == "websocket"

    @property
    def streams(self) -> bool:
        return self.success.kind in STREAMS
