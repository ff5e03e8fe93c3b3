"""The MCP servers of one Session, beside those of the configuration.

A server of the configuration stands before one of a Session with the same name: permission rules
are about names, and what a person wrote about the one must not count for the other.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.config_file.mcp_entries import McpOauthEntry, McpServerEntry, McpTimeoutEntry
from perdure.core.mcp import tool_names
from perdure.core.settings import mcp_servers
from perdure.core.settings.mcp_servers import McpServer, McpSettings
from perdure.schema import codec
from perdure.schema.settings.session_mcp import GivenMcpServer
from perdure.schema.value import Value

COLLIDES: Final = "the configuration has a server with this name, which is used instead"
_SECRET_CHARS_MIN: Final = 8
"""A shorter value is a word that messages need."""
_MILLIS_MAX: Final = int(limits.MCP_TIMEOUT_SECONDS_MAX * 1000)


class UnusableServerError(ValueError):
    """A given server cannot be used. The message names it and holds no value of it."""


class JoinedServers(Value):
    """The servers that a Session uses, and the names of its own that stand back."""

    settings: McpSettings
    refused: frozenset[str]


def read_servers(given: Mapping[str, GivenMcpServer]) -> tuple[McpServer, ...]:
    """The servers, sorted by name. Raises UnusableServerError for the first that cannot be used."""
    if len(given) > limits.MCP_SERVERS_MAX:
        raise UnusableServerError(f"a Session has at most {limits.MCP_SERVERS_MAX} servers")
    if len(codec.encode(given)) > limits.MCP_SESSION_BYTES_MAX:
        most = limits.MCP_SESSION_BYTES_MAX
        raise UnusableServerError(f"the servers of a Session have at most {most} bytes together")
    seen: dict[str, str] = {}
    for name in sorted(given):
        pattern = tool_names.rule_pattern(name)
        if pattern in seen:
            raise UnusableServerError(
                f"{name!r} and {seen[pattern]!r} are the same name for permission rules"
            )
        seen[pattern] = name
    return tuple(_read(name, given[name]) for name in sorted(given))


def join(configured: McpSettings, own: tuple[McpServer, ...]) -> JoinedServers:
    """The servers of the configuration with those of a Session."""
    taken = {
        *(tool_names.rule_pattern(one.name) for one in configured.servers),
        *(tool_names.rule_pattern(name) for name in configured.untrusted),
    }
    fitting = tuple(one for one in own if tool_names.rule_pattern(one.name) not in taken)
    servers = (*configured.servers, *fitting)
    return JoinedServers(
        replace(configured, servers=tuple(sorted(servers, key=lambda one: one.name))),
        frozenset(one.name for one in own) - frozenset(one.name for one in fitting),
    )


def secrets_of(server: McpServer) -> tuple[str, ...]:
    """The values of a server that no message may repeat."""
    target = server.target
    program = isinstance(target, mcp_servers.McpProgram)
    values = (target.environment if program else target.headers).values()
    return tuple(value for value in values if len(value) >= _SECRET_CHARS_MIN)


def _read(name: str, given: GivenMcpServer) -> McpServer:
    made = mcp_servers.make_server(name, _entry(name, given))
    if isinstance(made, str):
        raise UnusableServerError(f"{name[: limits.MCP_NAME_CHARS_MAX]!r} cannot be used: {made}")
    return made


def _entry(name: str, given: GivenMcpServer) -> McpServerEntry:
    return McpServerEntry(
        type=given.type,
        command=given.command,
        cwd=given.cwd,
        environment=given.environment,
        url=given.url,
        headers=given.headers,
        oauth=_oauth(given),
        timeout=_timeout(name, given),
    )


def _oauth(given: GivenMcpServer) -> McpOauthEntry | Literal[False] | UnsetType:
    oauth = given.oauth
    if oauth is UNSET or isinstance(oauth, bool):
        return False if oauth is False else UNSET
    return McpOauthEntry(
        client_id=oauth.client_id,
        client_secret=oauth.client_secret,
        scope=oauth.scope,
        callback_port=oauth.callback_port,
        redirect_uri=oauth.redirect_uri,
    )


def _timeout(name: str, given: GivenMcpServer) -> int | McpTimeoutEntry | UnsetType:
    timeout = given.timeout
    if timeout is UNSET:
        return UNSET
    if isinstance(timeout, int):
        return _millis(name, timeout)
    startup, request = timeout.startup, timeout.request
    return McpTimeoutEntry(
        startup=UNSET if startup is UNSET else _millis(name, startup),
        request=UNSET if request is UNSET else _millis(name, request),
    )


def _millis(name: str, value: int) -> int:
    if not 0 < value <= _MILLIS_MAX:
        raise UnusableServerError(f"`timeout` of {name!r} is not 1 to {_MILLIS_MAX} milliseconds")
    return value
