"""Checks Host, Origin and credentials. Pure functions.

Every web page that the user opens can reach a loopback server. So on every route and method the
Host must be a name of this server (against DNS rebinding) and an Origin must be its own or a
listed one (against cross-site requests); `null` is never allowed. Credentials are compared in
constant time.
"""

import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

from perdure.net import loopback
from perdure.protocol.query import Fields
from perdure.schema.errors import ForbiddenError, InvalidRequestError, UnauthorizedError
from perdure.schema.value import Confidential
from perdure.server.http.asgi import Header
from perdure.server.settings import ServerSettings

Headers = Mapping[bytes, bytes]

_LOOPBACK: Final = frozenset(name.encode() for name in loopback.AUTHORITIES)
_SINGULAR: Final = frozenset(
    {b"host", b"origin", b"authorization", b"content-length", b"content-type"}
)
_ANY_PORT: Final = ":*"
_SHOWN_BYTES_MAX: Final = 200
_VARY: Final[Header] = (b"vary", b"Origin, Accept-Encoding")
_METHODS: Final = b"GET, HEAD, PUT, PATCH, POST, DELETE"


class Policy(Confidential, kw_only=True):
    """The settings that requests are checked against, prepared for comparison."""

    hosts: frozenset[bytes]
    origins: frozenset[bytes]
    origins_of_any_port: frozenset[bytes]
    """Scheme and host of those whose port may be any."""
    credential: bytes | None
    """Digest of `user:password`; None when the server asks for no credentials."""

    @property
    def asks_credentials(self) -> bool:
        return self.credential is not None

    def allows_origin(self, origin: bytes) -> bool:
        """Whether pages of this origin may call, which is not this server's own."""
        if origin in self.origins:
            return True
        name, _, port = origin.rpartition(b":")
        return (name if port.isdigit() else origin) in self.origins_of_any_port


def make_policy(settings: ServerSettings) -> Policy:
    names = {_bracketed(name).lower().encode() for name in (settings.host, *settings.allowed_hosts)}
    password = settings.password
    return Policy(
        hosts=_LOOPBACK | names,
        origins=frozenset(each.encode() for each in settings.allowed_origins),
        origins_of_any_port=frozenset(
            each.removesuffix(_ANY_PORT).encode()
            for each in settings.allowed_origins
            if each.endswith(_ANY_PORT)
        ),
        credential=None if not password else _digest(f"{settings.username}:{password}".encode()),
    )


def check_unambiguous(raw_headers: Sequence[Header]) -> None:
    """Refuse a repeated header: a proxy and this server might each go by another of the values."""
    names = [name for name, _ in raw_headers if name in _SINGULAR]
    if len(names) != len(set(names)):
        raise InvalidRequestError("A header that may be sent once was sent twice")


def check_host(headers: Headers, policy: Policy) -> None:
    if _host_name(headers.get(b"host", b"")) not in policy.hosts:
        raise ForbiddenError("This server does not answer to that Host")


def check_origin(headers: Headers, policy: Policy) -> None:
    """Refuse a script of another site. Without an Origin the request is from no script."""
    # `check_host` has run, so the Host is one of this server's names.
    if not is_own_page(headers) and not policy.allows_origin(headers[b"origin"]):
        origin = headers[b"origin"][:_SHOWN_BYTES_MAX].decode("ascii", "replace")
        raise ForbiddenError(
            f"Requests from the Origin {origin} are not allowed. If you trust its pages, start the"
            f" server with `perdure serve --cors {origin}`"
        )


def is_own_page(headers: Headers) -> bool:
    """Whether no web page sent this, or one of this server did; its Host has been checked."""
    origin = headers.get(b"origin")
    host = headers.get(b"host", b"").lower()
    return origin is None or origin.lower() in {b"http://" + host, b"https://" + host}


def check_credentials(
    headers: Headers, fields: Fields, policy: Policy, *, token_in_query: bool
) -> None:
    """With `token_in_query` the URL may carry the credentials: an EventSource sends no headers."""
    if policy.credential is None:
        return
    token = fields.get("auth_token") if token_in_query else None
    if token is not None:
        given = token[0].encode()
    else:
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"basic":
            raise UnauthorizedError
    if not hmac.compare_digest(_digest(_from_base64(given)), policy.credential):
        raise UnauthorizedError


def may_challenge(headers: Headers) -> bool:
    """Whether a refusal may make a browser show its own dialog: not for requests of a page."""
    return headers.get(b"sec-fetch-mode", b"navigate") == b"navigate"


def is_preflight(method: str, headers: Headers) -> bool:
    return (
        method == "OPTIONS" and b"origin" in headers and b"access-control-request-method" in headers
    )


def preflight_headers(headers: Headers) -> tuple[Header, ...]:
    """Headers of the answer to a preflight whose Origin has been checked.

    `response_headers` adds the Origin: a browser refuses an answer that names it twice.
    """
    return (
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-allow-headers", headers.get(b"access-control-request-headers", b"")),
        (b"access-control-max-age", b"86400"),
        (b"vary", b"Access-Control-Request-Headers"),
    )


def response_headers(headers: Headers, policy: Policy) -> tuple[Header, ...]:
    """Headers that every answer to this request carries."""
    origin = headers.get(b"origin")
    if origin is None or not policy.allows_origin(origin):
        return (_VARY,)
    return ((b"access-control-allow-origin", origin), _VARY)


def _host_name(host: bytes) -> bytes:
    """The name without the port, which a tunnel may change; empty when it is malformed."""
    if host.startswith(b"["):
        name, bracket, port = host.partition(b"]")
        name, port = name + bracket, port.removeprefix(b":")
    else:
        name, _, port = host.partition(b":")
    if port and not port.isdigit():
        return b""
    return name.lower()


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


def _from_base64(text: bytes) -> bytes:
    try:
        return binascii.a2b_base64(text)
    except binascii.Error:
        return b""


def _digest(secret: bytes) -> bytes:
    """A digest has one length, so comparing it does not reveal the length of the secret."""
    return hashlib.sha256(secret).digest()
