"""MCP servers that an editor names for a Session, in the form in which clients give them."""

import os
from collections.abc import Sequence
from typing import Final

import msgspec

from perdure.acp.schema.requests import HttpServer, StdioServer
from perdure.acp.wire.rpc_error import invalid
from perdure.core.limits import ACP_MCP_SERVERS_MAX
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.settings.session_mcp import GivenMcpServer, GivenMcpServers

_KINDS: Final[dict[str, type[StdioServer] | type[HttpServer]]] = {
    "stdio": StdioServer,
    "http": HttpServer,
}


def read_servers(given: Sequence[JsonObject] | None) -> GivenMcpServers:
    """The servers by name. Raises RpcError for one that cannot be an entry, and says which."""
    if given is not None and len(given) > ACP_MCP_SERVERS_MAX:
        raise invalid(f"A Session may have {ACP_MCP_SERVERS_MAX} MCP servers, not {len(given)}")
    servers: GivenMcpServers = {}
    for number, server in enumerate(given or ()):
        place = f"mcpServers[{number}]"
        kind = _KINDS.get(str(server.get("type") or "stdio"))
        if kind is None:
            raise invalid(f"{place}: {server.get('type')!r:.80} servers are not offered")
        try:
            found = codec.convert(kind, server)
        except msgspec.ValidationError as error:
            raise invalid(f"{place}: {error}") from error
        if not found.name or found.name in servers:
            raise invalid(f"{place}: the name {found.name!r:.80} is empty or given twice")
        servers[found.name] = _read(place, found)
    return servers


def _read(place: str, server: StdioServer | HttpServer) -> GivenMcpServer:
    if isinstance(server, HttpServer):
        if not server.url.startswith(("http://", "https://")):
            raise invalid(f"{place}: {server.url!r:.200} is not an http address")
        headers = {header.name: header.value for header in server.headers or ()}
        return GivenMcpServer(type="remote", url=server.url, headers=headers, oauth=False)
    if not server.command or (os.sep in server.command and not os.path.isabs(server.command)):
        raise invalid(f"{place}: the command {server.command!r:.200} is not an absolute path")
    return GivenMcpServer(
        type="local",
        command=(server.command, *(server.args or ())),
        environment={variable.name: variable.value for variable in server.env or ()},
    )
