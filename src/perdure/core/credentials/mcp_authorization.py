"""Where a remote MCP server wants a login: metadata of the server and of its authorization server.

The login itself is one of ours (core.credentials.oauth): what is found here becomes a LoginMethod.
Addresses are those of RFC 9728 and RFC 8414, registration is that of RFC 7591. Only https, and http
on this machine, is asked.
"""

from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

import msgspec
from msgspec.structs import replace

from perdure.core.config_file.entries import LoginEntry
from perdure.core.config_file.mcp_entries import McpOauthEntry
from perdure.core.credentials import keys, oauth
from perdure.core.credentials.oauth import LoginMethod, LoginMethodError
from perdure.core.text import jsonc
from perdure.lazy_pattern import lazy_pattern
from perdure.net import loopback
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.credential import SecretPlace
from perdure.schema.value import Value

CALLBACK_PORT: Final = 19876
_CALLBACK_PATH: Final = "/mcp/oauth/callback"
_METADATA: Final = lazy_pattern(r'resource_metadata="([^"]{1,2000})"')


class McpLoginError(Exception):
    """The login cannot begin. The message is for a person."""


_IN_HEADER: Final = "client_secret_basic"
_IN_BODY: Final = "client_secret_post"


class AuthorizationServer(Value, kw_only=True):
    authorize_url: str
    token_url: str
    registration_url: str | None = None
    scopes: tuple[str, ...] = ()
    secret_place: SecretPlace = "header"
    """Where it wants the secret of a client that has one."""


def integration_id(url: str) -> str:
    """The id under which the login of a server is stored: servers of one origin share it."""
    return f"mcp:{origin(url)}"


def origin(url: str) -> str:
    """The normalised origin of the address of a server, where its login may be sent."""
    return keys.origin_of(url) or ""


def resource_urls(url: str, challenge: str) -> tuple[str, ...]:
    """Where the metadata of a server may be; `challenge` is its WWW-Authenticate header."""
    parts = urlsplit(url)
    named = _METADATA.search(challenge)
    well_known = "/.well-known/oauth-protected-resource"
    found = (
        _join(url, named.group(1)) if named else "",
        _at(url, f"{well_known}{parts.path.rstrip('/')}"),
        _at(url, well_known),
    )
    return tuple(dict.fromkeys(filter(is_safe, found)))


def read_issuer(metadata: JsonValue, url: str) -> str:
    """The authorization server that the metadata of a server names, else the server itself."""
    named: JsonValue = metadata.get("authorization_servers") if jsonc.is_object(metadata) else None
    first: JsonValue = named[0] if jsonc.is_list(named) and named else None
    return first if isinstance(first, str) and is_safe(first) else origin(url)


def issuer_urls(issuer: str) -> tuple[str, ...]:
    """Where the metadata of an authorization server may be."""
    path = urlsplit(issuer).path.rstrip("/")
    found = (
        _at(issuer, f"/.well-known/oauth-authorization-server{path}"),
        _at(issuer, f"/.well-known/openid-configuration{path}"),
        f"{issuer.rstrip('/')}/.well-known/openid-configuration",
    )
    return tuple(dict.fromkeys(filter(is_safe, found)))


def read_server(metadata: JsonValue, issuer: str) -> AuthorizationServer:
    """What the metadata says; without any, the addresses that older servers have."""
    given: JsonObject = metadata if jsonc.is_object(metadata) else {}
    registration = given.get("registration_endpoint")
    if not given:
        registration = _at(issuer, "/register")
    scopes: JsonValue = given.get("scopes_supported")
    ways: JsonValue = given.get("token_endpoint_auth_methods_supported")
    only_body = jsonc.is_list(ways) and _IN_BODY in ways and _IN_HEADER not in ways
    return AuthorizationServer(
        authorize_url=_address(given.get("authorization_endpoint"), _at(issuer, "/authorize")),
        token_url=_address(given.get("token_endpoint"), _at(issuer, "/token")),
        registration_url=registration
        if isinstance(registration, str) and is_safe(registration)
        else None,
        scopes=tuple(scope for scope in scopes if isinstance(scope, str))
        if jsonc.is_list(scopes)
        else (),
        secret_place="body" if only_body else "header",
    )


def redirect_url(entry: McpOauthEntry) -> str:
    """Where the browser is sent after the login."""
    return entry.redirect_uri or (
        f"http://127.0.0.1:{entry.callback_port or CALLBACK_PORT}{_CALLBACK_PATH}"
    )


def registration_body(entry: McpOauthEntry) -> bytes:
    """The request to register this program as a public client."""
    body: JsonObject = {
        "client_name": "Perdure",
        "redirect_uris": [redirect_url(entry)],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return codec.encode({**body, **({"scope": entry.scope} if entry.scope else {})})


def read_registration(status: int, body: bytes) -> str:
    """The id that the client got. Raises McpLoginError."""
    try:
        answer = codec.decode_any(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = None
    client: JsonValue = answer.get("client_id") if jsonc.is_object(answer) else None
    if status not in {200, 201} or not isinstance(client, str) or not client:
        raise McpLoginError(
            f"the server did not register this program (status {status}); set `oauth.client_id`"
        )
    return client


def make_method(
    server: AuthorizationServer, entry: McpOauthEntry, *, client_id: str, url: str
) -> LoginMethod:
    """The login as a method of ours. Raises McpLoginError."""
    scopes = tuple(entry.scope.split()) if entry.scope else server.scopes
    try:
        method = oauth.read_method(
            "mcp",
            LoginEntry(
                label="MCP login",
                authorize_url=server.authorize_url,
                token_url=server.token_url,
                client_id=client_id,
                scopes=scopes,
                redirect_url=redirect_url(entry),
                parameters={"resource": _resource(url)},
            ),
        )
    except LoginMethodError as error:
        raise McpLoginError(f"the server's login cannot be used: {error}") from error
    return replace(
        method, client_secret=entry.client_secret or "", secret_place=server.secret_place
    )


def is_safe(url: str) -> bool:
    """Whether secrets may be sent there: by https, or to this machine."""
    try:
        parts = urlsplit(url)
        hostname = parts.hostname
    except ValueError:
        return False
    return bool(hostname) and (parts.scheme == "https" or loopback.is_loopback_url(url))


def _address(value: JsonValue, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def _join(url: str, given: str) -> str:
    try:
        return urljoin(url, given)
    except ValueError:
        return ""


def _at(url: str, path: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _resource(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
