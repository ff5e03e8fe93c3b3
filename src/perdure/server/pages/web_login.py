"""Tickets with which `perdure web` opens a page that is logged in.

`POST /web/ticket`, with credentials, makes a ticket. The page sends it to `POST /web/login`, once
and within a minute, and gets the header that it sends from then on. So a password never stands in
an address, which browsers keep.
"""

import base64
import hashlib
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from perdure.schema import codec
from perdure.schema.errors import (
    InvalidRequestError,
    MethodNotAllowedError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
)
from perdure.server.http.asgi import Header
from perdure.server.request import Request
from perdure.server.response import JSON, Response
from perdure.server.settings import ServerSettings

TICKET_PATH: Final = b"/web/ticket"
LOGIN_PATH: Final = b"/web/login"
PATHS: Final = frozenset({TICKET_PATH, LOGIN_PATH})
TICKET_SECONDS: Final = 60
TICKETS_MAX: Final = 100
"""Tickets that wait at once. The oldest is dropped for a new one."""
_BODY_BYTES_MAX: Final = 1_000
_TICKET_BYTES: Final = 32
_UNSEEN: Final[Header] = (b"cache-control", b"no-store")


class _Login(msgspec.Struct):
    ticket: str


class WebLogin:
    """The tickets of one server. Only their digests are kept."""

    def __init__(self, settings: ServerSettings, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._until: dict[bytes, float] = {}

    async def answer(self, request: Request) -> Response:
        """The answer at one of `PATHS`; credentials for the ticket have been checked."""
        if request.method != "POST":
            raise MethodNotAllowedError(request.method, ("POST",))
        # A form of another site cannot send this type.
        if request.headers.get(b"content-type", b"").split(b";")[0].strip() != JSON[1]:
            raise UnsupportedMediaTypeError("The body of this request is application/json")
        body = await request.body(bytes_max=_BODY_BYTES_MAX)
        if request.path == TICKET_PATH:
            told = {"ticket": self._issue(), "expires_in": TICKET_SECONDS}
        else:
            self._redeem(body)
            told = {"authorization": self._authorization()}
        return Response(200, codec.encode(told), (JSON, _UNSEEN))

    def _issue(self) -> str:
        while len(self._until) >= TICKETS_MAX:
            del self._until[next(iter(self._until))]
        ticket = secrets.token_urlsafe(_TICKET_BYTES)
        self._until[_digest(ticket)] = self._now() + TICKET_SECONDS
        return ticket

    def _redeem(self, body: bytes) -> None:
        try:
            given = msgspec.json.decode(body, type=_Login)
        except msgspec.DecodeError as error:
            raise InvalidRequestError(
                f"The body is not a ticket: {error}", kind="Payload"
            ) from error
        until = self._until.pop(_digest(given.ticket), 0.0)
        if until <= self._now():
            raise UnauthorizedError

    def _authorization(self) -> str | None:
        """What the page sends with each request; None where the server asks for nothing."""
        settings = self._settings
        if not settings.password:
            return None
        pair = f"{settings.username}:{settings.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


def _digest(ticket: str) -> bytes:
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()
