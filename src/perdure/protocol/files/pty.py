"""Terminal operations: start, inspect, rename, resize and end; and connect by WebSocket.

A browser cannot send headers with a WebSocket. It first requests a ticket, which is part of the URL
and valid for one connection to one terminal.
"""

from typing import Annotated, Final

from msgspec import Meta

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import ForbiddenError, PtyNotFoundError, ServiceUnavailableError
from perdure.schema.files.pty import PtyInfo, PtySize, PtyTicket
from perdure.schema.ids import SuppliedPtyID

TITLE_CHARS_MAX: Final = 200


class PtyParams(Payload, frozen=True):
    pty_id: SuppliedPtyID


class CreatePty(Payload, frozen=True):
    command: str | None = None
    args: tuple[str, ...] | None = None
    cwd: str | None = None
    title: Annotated[str, Meta(max_length=TITLE_CHARS_MAX)] | None = None
    env: dict[str, str] | None = None

    def __repr__(self) -> str:
        return "CreatePty(...)"


class UpdatePty(Payload, frozen=True):
    title: Annotated[str, Meta(max_length=TITLE_CHARS_MAX)] | None = None
    size: PtySize | None = None


class ConnectPty(Payload, frozen=True):
    """`cursor`: where to continue reading; -1 means the end, none means all kept output."""

    ticket: str | None = None
    cursor: Annotated[int, Meta(ge=-1)] | None = None

    def __repr__(self) -> str:
        return "ConnectPty(...)"


_GROUP: Final = "pty"
_ON_PTY: Final = (*REFUSALS, PtyNotFoundError)

LIST: Final = Endpoint(
    operation_id="v2.pty.list",
    method="GET",
    path="/api/pty",
    group=_GROUP,
    scope="location",
    success=Success("location_data", tuple[PtyInfo, ...]),
)
CREATE: Final = Endpoint(
    operation_id="v2.pty.create",
    method="POST",
    path="/api/pty",
    group=_GROUP,
    scope="location",
    body=CreatePty,
    body_optional=True,
    success=Success("location_data", PtyInfo),
    errors=(*REFUSALS, ServiceUnavailableError),
)
GET: Final = Endpoint(
    operation_id="v2.pty.get",
    method="GET",
    path="/api/pty/{ptyID}",
    group=_GROUP,
    scope="location",
    params=PtyParams,
    success=Success("location_data", PtyInfo),
    errors=_ON_PTY,
)
UPDATE: Final = Endpoint(
    operation_id="v2.pty.update",
    method="PUT",
    path="/api/pty/{ptyID}",
    group=_GROUP,
    scope="location",
    params=PtyParams,
    body=UpdatePty,
    success=Success("location_data", PtyInfo),
    errors=_ON_PTY,
)
REMOVE: Final = Endpoint(
    operation_id="v2.pty.remove",
    method="DELETE",
    path="/api/pty/{ptyID}",
    group=_GROUP,
    scope="location",
    params=PtyParams,
    success=Success("no_content"),
    errors=_ON_PTY,
)
CONNECT_TOKEN: Final = Endpoint(
    operation_id="v2.pty.connectToken",
    method="POST",
    path="/api/pty/{ptyID}/connect-token",
    group=_GROUP,
    scope="location",
    params=PtyParams,
    success=Success("location_data", PtyTicket),
    errors=(*_ON_PTY, ForbiddenError),
)
CONNECT: Final = Endpoint(
    operation_id="v2.pty.connect",
    method="GET",
    path="/api/pty/{ptyID}/connect",
    group=_GROUP,
    scope="location",
    params=PtyParams,
    query=ConnectPty,
    success=Success("websocket"),
    errors=(*_ON_PTY, ForbiddenError),
)

ENDPOINTS: Final = (LIST, CREATE, GET, UPDATE, REMOVE, CONNECT_TOKEN, CONNECT)
