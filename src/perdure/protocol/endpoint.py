"""One operation of the HTTP contract, as data.

An Endpoint describes the request, the response and the declared errors. Handlers in the server and
methods in the client refer to endpoints by `operation_id`. Both sides read this one table.
"""

from typing import Final, Literal, Protocol

from perdure.protocol.errors import TooManyRequestsError
from perdure.schema.codec import JsonValue, Payload
from perdure.schema.errors import (
    DomainError,
    ForbiddenError,
    InvalidRequestError,
    PayloadTooLargeError,
    ServiceUnavailableError,
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
    "content",  # the bytes of a file, or a range of them
    "websocket",  # messages in both directions after the upgrade
    "durable_stream",  # server-sent events, resumable by `seq`
    "live_stream",  # server-sent events, only while connected
]

STREAMS: Final[frozenset[SuccessKind]] = frozenset({"durable_stream", "live_stream"})
REFUSALS: Final[tuple[type[DomainError], ...]] = (InvalidRequestError, UnauthorizedError)
"""Errors of every operation."""


class Success(Value):
    kind: SuccessKind
    type: JsonValue = None
    """The type of X: a class, a union or a generic alias. None if there is no X."""


class OtherBody(Protocol):
    """A body that other versions of a client send for the same operation."""

    def to_body(self) -> Payload: ...


class Endpoint(Value, kw_only=True):
    operation_id: str
    method: Method
    path: str
    group: str
    success: Success
    scope: Scope = "none"
    params: type[Payload] | None = None
    """Further path parameters; the Session id is checked before them."""
    query: type[Payload] | None = None
    body: type[Payload] | None = None
    body_optional: bool = False
    """An empty body means `{}`."""
    is_open: bool = False
    """Whether it is answered without credentials. It must tell nothing of what is stored."""
    other_body: "type[OtherBody] | None" = None
    """Another form of the body, tried where the first does not fit; it is not described."""
    other_routes: tuple[tuple[Method, str], ...] = ()
    """Further methods and paths of the operation, with the same parameters; not described."""
    errors: tuple[type[DomainError], ...] = REFUSALS

    @property
    def failures(self) -> tuple[type[DomainError], ...]:
        """All declared errors, including those that follow from the kind of request.

        Any request may be forbidden or rate-limited, or find the disk full or the database damaged;
        a body may be too large or of another type, and a write may find the database locked by
        another process.
        """
        found = [*self.errors, ForbiddenError, TooManyRequestsError]
        if self.body is not None:
            found += [PayloadTooLargeError, UnsupportedMediaTypeError]
        found.append(StorageError)
        if self.method != "GET":
            found.append(ServiceUnavailableError)
        return tuple(dict.fromkeys(found))

    @property
    def upgrades(self) -> bool:
        return self.success.kind == "websocket"

    @property
    def streams(self) -> bool:
        return self.success.kind in STREAMS
