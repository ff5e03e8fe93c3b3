"""Terminals in V1: as in V2, with the value itself as the answer."""

from typing import Final

from perdure.protocol.endpoint import Endpoint, Success
from perdure.protocol.files.pty import ConnectPty, CreatePty, PtyParams, UpdatePty
from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import Record
from perdure.schema.errors import ForbiddenError, PtyNotFoundError
from perdure.schema.files.pty import PtyInfo, PtyTicket


class V1Shell(Record):
    path: str
    name: str
    acceptable: bool
    """Whether terminals and commands can use it."""


SHELLS: Final = declare("GET", "/pty/shells", "pty.shells", tuple[V1Shell, ...])
LIST: Final = declare("GET", "/pty", "pty.list", tuple[PtyInfo, ...])
CREATE: Final = declare("POST", "/pty", "pty.create", PtyInfo, body=CreatePty, body_optional=True)
GET: Final = declare("GET", "/pty/{ptyID}", "pty.get", PtyInfo, params=PtyParams)
UPDATE: Final = declare(
    "PUT", "/pty/{ptyID}", "pty.update", PtyInfo, params=PtyParams, body=UpdatePty
)
REMOVE: Final = declare("DELETE", "/pty/{ptyID}", "pty.remove", bool, params=PtyParams)
CONNECT_TOKEN: Final = declare(
    "POST", "/pty/{ptyID}/connect-token", "pty.connectToken", PtyTicket, params=PtyParams
)
CONNECT: Final = Endpoint(
    operation_id="v1.pty.connect",
    method="GET",
    path="/pty/{ptyID}/connect",
    group="v1",
    params=PtyParams,
    query=ConnectPty,
    success=Success("websocket"),
    errors=(*GET.errors, PtyNotFoundError, ForbiddenError),
)

ENDPOINTS: Final = (SHELLS, LIST, CREATE, GET, UPDATE, REMOVE, CONNECT_TOKEN, CONNECT)
