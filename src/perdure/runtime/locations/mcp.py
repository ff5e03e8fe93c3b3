"""MCP servers for clients: their state, restarts and logins.

A login is found by the metadata of the server (core.credentials.mcp_authorization) and then an
attempt like any other (runtime.locations.integrations). Listing starts nothing.
"""

import asyncio

import msgspec

from perdure.core.config_file.mcp_entries import McpOauthEntry
from perdure.core.credentials import mcp_authorization as authorization
from perdure.core.credentials.keys import StoreUnreadable
from perdure.core.credentials.mcp_authorization import McpLoginError
from perdure.core.settings.mcp_servers import McpAddress, McpServer
from perdure.location.location import Location
from perdure.location.models.credentials import Credentials, send_login_request
from perdure.location.registry import LocationRegistry
from perdure.net.transport import HttpRequest, HttpTransport, TransportError
from perdure.runtime.locations import login_attempt
from perdure.runtime.locations.integrations import Integrations
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.errors import McpServerNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.integration import Attempt
from perdure.schema.settings.mcp import McpServerInfo

_PROBE_SECONDS_MAX = 10.0


class McpServersOfLocations:
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(
        self,
        locations: LocationRegistry,
        integrations: Integrations,
        credentials: Credentials,
        transport: HttpTransport,
    ) -> None:
        self._locations = locations
        self._credentials = credentials
        self._integrations = integrations
        self._transport = transport

    async def list(
        self, ref: LocationRef, *, session: SessionID | None = None
    ) -> tuple[McpServerInfo, ...]:
        """The servers of a Location, with `session` also those of the Session."""
        async with self._locations.hold(ref, session=session) as location:
            await location.mcp.current()
            return location.mcp.describe()

    async def restart(
        self, ref: LocationRef, name: str, *, session: SessionID | None = None
    ) -> McpServerInfo:
        """Start a server again, or for the first time; it may still be starting afterwards."""
        async with self._locations.hold(ref, session=session) as location:
            server = _find(location, name)
            if not location.mcp_servers.restart(server.name):
                raise login_attempt.refused(
                    f"The MCP server {name} is disabled in the configuration"
                )
            await location.mcp.current()
            return next(info for info in location.mcp.describe() if info.name == name)

    async def login(
        self, ref: LocationRef, name: str, *, session: SessionID | None = None
    ) -> Attempt:
        """Begin a login, which the user completes in a browser."""
        async with self._locations.hold(ref, session=session) as location:
            target = _find(location, name).target
        if not isinstance(target, McpAddress):
            raise login_attempt.refused(f"The MCP server {name} is a program and has no login")
        if target.oauth is None:
            raise login_attempt.refused(f"The MCP server {name} has `oauth: false`: no login")
        if target.oauth.client_secret and not target.oauth.client_id:
            raise login_attempt.refused(
                "`oauth.client_secret` belongs to an `oauth.client_id`, which is missing"
            )
        try:
            return await self._begin(name, target, target.oauth)
        except McpLoginError as error:
            raise login_attempt.refused(f"The login to {name} cannot begin: {error}") from error

    async def logout(self, ref: LocationRef, name: str) -> None:
        """Remove the stored login of a server; without one, nothing happens."""
        server = _find(await self._locations.get(ref), name)
        if isinstance(server.target, McpAddress):
            stored = self._credentials.stored()
            name = authorization.integration_id(server.target.url)
            if not isinstance(stored, StoreUnreadable) and name in stored:
                await self._integrations.remove(stored[name].id)

    async def _begin(self, name: str, target: McpAddress, entry: McpOauthEntry) -> Attempt:
        if not authorization.is_safe(target.url):
            raise McpLoginError("its address is neither https nor on this machine")
        challenge = await self._challenge(target)
        resource = await self._fetch_first(authorization.resource_urls(target.url, challenge))
        issuer = authorization.read_issuer(resource, target.url)
        metadata = await self._fetch_first(authorization.issuer_urls(issuer))
        server = authorization.read_server(metadata, issuer)
        client_id = entry.client_id or await self._register(server.registration_url, entry)
        method = authorization.make_method(server, entry, client_id=client_id, url=target.url)
        return await self._integrations.begin_login(
            authorization.integration_id(target.url),
            method,
            label=f"MCP server {name}",
            origins=(authorization.origin(target.url),),
        )

    async def _challenge(self, target: McpAddress) -> str:
        """What the server says about its login when it is asked without one."""
        request = HttpRequest(url=target.url, headers={}, body=(), method="GET")
        try:
            async with (
                asyncio.timeout(_PROBE_SECONDS_MAX),
                self._transport.open(request) as response,
            ):
                return response.headers.get("www-authenticate", "")
        except (TransportError, TimeoutError) as error:
            raise McpLoginError("the server cannot be reached") from error

    async def _fetch_first(self, urls: tuple[str, ...]) -> JsonValue:
        """The first of the documents that there is; None without one."""
        for url in urls:
            request = HttpRequest(
                url=url, headers={"accept": "application/json"}, body=(), method="GET"
            )
            answer = await send_login_request(self._transport, request)
            if isinstance(answer, tuple) and answer[0] == 200:
                try:
                    return codec.decode_any(answer[1])
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
        return None

    async def _register(self, url: str | None, entry: McpOauthEntry) -> str:
        if url is None:
            raise McpLoginError("the server registers no programs; set `oauth.client_id`")
        request = HttpRequest(
            url=url,
            headers={"content-type": "application/json", "accept": "application/json"},
            body=(authorization.registration_body(entry),),
        )
        answer = await send_login_request(self._transport, request)
        if not isinstance(answer, tuple):
            raise McpLoginError(f"this program could not be registered: {answer.reason}")
        return authorization.read_registration(*answer)


def _find(location: Location, name: str) -> McpServer:
    for server in location.settings.mcp.servers:
        if server.name == name:
            return server
    raise McpServerNotFoundError(name)
