"""The tools of MCP servers in a Location's registry, and the definitions that a Session is offered.

`refresh` brings the registry up to what is known of the servers; it is called when Context Sources
are observed, so a change is heard at a boundary. `listed` gives the definitions of a Session's
epoch. With more tools than the configuration allows, the model finds them by `mcp_search` and calls
them by `mcp_call`, so that the request does not grow with the servers.

Invariant: a Session is offered the tools that its epoch names, and no others.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Final

from perdure.core.approval.rules import Rules
from perdure.core.context import system_context
from perdure.core.context.system_context import Observation
from perdure.core.mcp import tool_names
from perdure.core.mcp.tool_names import McpToolName
from perdure.core.settings.mcp_servers import McpSettings
from perdure.llm.request import ToolDefinition
from perdure.location.mcp import context_source, prompts, resources, search_tools
from perdure.location.mcp.call import McpCaller, OfferedTool
from perdure.location.mcp.context_source import OfferedServer, OfferedTools, ServerInstructions
from perdure.location.mcp.servers import McpServers
from perdure.schema import codec
from perdure.schema.settings.command import CommandInfo
from perdure.schema.settings.mcp import McpServerInfo
from perdure.tools.api.registry import (
    NOTHING_LISTED,
    ListedTools,
    ToolRegistrationError,
    ToolRegistry,
    is_denied,
)

logger = logging.getLogger(__name__)

_LISTED_KEPT: Final = 64


class McpTools:
    """The MCP tools of a Location under one configuration."""

    def __init__(
        self, servers: McpServers, settings: McpSettings, registry: Callable[[], ToolRegistry]
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._registry = registry
        self._caller = McpCaller(servers)
        self._registered: dict[str, tuple[McpToolName, ExitStack]] = {}
        self._tools: Mapping[str, OfferedTool] = {}
        self._digests: Mapping[str, str] = {}
        self._refused: frozenset[McpToolName] = frozenset()
        self._listed: OrderedDict[OfferedTools, ListedTools] = OrderedDict()
        self._search: ExitStack | None = None
        """The scope of the tools of ours about servers, once they are registered."""
        self._estimate: ListedTools = NOTHING_LISTED
        self._seen: tuple[object, ...] = ()

    async def prepare(self) -> None:
        """Start the servers that are not running; see McpServers.prepare."""
        await self._servers.prepare()

    async def observe(self, rules: Iterable[Rules]) -> Observation:
        """Observe which tools an agent with these rules is offered now."""
        if not self._servers.is_configured and not self._registered:
            return ()
        await self._refresh()
        given = tuple(rules)
        allowed = [
            offered for offered in self._tools.values() if not is_denied(given, offered.name.action)
        ]
        searched = len(allowed) > self._settings.search_above
        if searched and is_denied(given, tool_names.CALL):
            allowed = []
        servers = tuple(
            OfferedServer(
                server=server,
                digest=digest,
                tools=()
                if searched
                else tuple(one.name.offered for one in allowed if one.name.server == server),
            )
            for server, digest in self._digests.items()
            if any(one.name.server == server for one in allowed)
        )
        named = {server.server for server in servers}
        return context_source.observe(
            OfferedTools(
                servers=servers,
                searched=searched and bool(servers),
                resources=any(
                    known.list.has_resources and known.server.name in named
                    for known in self._servers.known()
                )
                and not is_denied(given, tool_names.READ_RESOURCE),
            ),
            tuple(
                ServerInstructions(known.server.name, known.list.instructions)
                for known in self._servers.known()
                if known.list.instructions.strip() and known.server.name in named
            ),
        )

    async def listed(self, snapshot: str) -> ListedTools:
        """The definitions that the epoch with this snapshot offers."""
        offered = _stored(snapshot)
        if offered is None:
            return NOTHING_LISTED
        kept = self._listed.get(offered)
        if kept is None:
            kept = self._listed[offered] = await self._define(offered)
            if len(self._listed) > _LISTED_KEPT:
                self._listed.popitem(last=False)
        return kept

    async def list_commands(self) -> tuple[CommandInfo, ...]:
        """The prompts of the servers that are connected, as commands."""
        found = [await prompts.list_commands(server) for server in self._servers.list_running()]
        return tuple(command for commands in found for command in commands)

    def describe(self) -> tuple[McpServerInfo, ...]:
        names: dict[str, tuple[str, ...]] = {}
        for offered in self._tools.values():
            server = offered.name.server
            names[server] = (*names.get(server, ()), offered.name.offered)
        return self._servers.describe(names)

    async def current(self) -> ListedTools:
        """The definitions of now, for what is outside of an epoch; they are all registered."""
        if self._servers.is_configured or self._registered:
            await self._refresh()
        if not self._tools:
            return NOTHING_LISTED
        found = {name: offered.definition for name, offered in self._tools.items()}
        own = {tool_names.READ_RESOURCE: resources.DEFINITION}
        return {**found, **search_tools.DEFINITIONS, **own}

    def estimate(self) -> ListedTools:
        """About what a Session is offered, of what was registered last."""
        return self._estimate

    async def _refresh(self) -> None:
        await self._servers.load_known()
        known = self._servers.known()
        registry = self._registry()
        # What is listed is of MCP servers too: of these, or of those that they lie over.
        others = frozenset(registry.names_for_all())
        seen = (tuple((one.server.name, one.list.digest) for one in known), others)
        if seen == self._seen:
            return
        self._seen = seen
        tools = {
            McpToolName(one.server.name, tool.name): tool
            for one in known
            for tool in one.list.tools
        }
        named = tool_names.name_tools(tools, taken=others)
        self._report_refused(named.refused)
        self._digests = {one.server.name: one.list.digest for one in known}
        self._tools = {
            name: OfferedTool(found, tools[found]) for name, found in named.tools.items()
        }
        self._register(registry)
        if len(self._tools) > self._settings.search_above:
            self._estimate = search_tools.DEFINITIONS
        else:
            self._estimate = {name: one.definition for name, one in self._tools.items()}

    def _register(self, registry: ToolRegistry) -> None:
        """Register the tools that are new, and withdraw those that are gone."""
        for name, (found, scope) in tuple(self._registered.items()):
            offered = self._tools.get(name)
            if offered is None or offered.name != found:
                del self._registered[name]
                scope.close()
        for name, offered in self._tools.items():
            if name in self._registered:
                continue
            scope = ExitStack()
            tool = self._caller.make_tool(offered.name, offered.tool)
            try:
                scope.enter_context(registry.register_schema(tool, listed=True))
            except ToolRegistrationError as error:
                logger.warning("an MCP tool is not offered: %s", error)
                continue
            self._registered[name] = offered.name, scope
        if self._tools and self._search is None:
            self._search = ExitStack()
            own = search_tools.make_search_tools(self._caller, lambda: self._tools)
            for tool in (*own, resources.make_resource_tool(self._servers)):
                self._search.enter_context(registry.register_schema(tool, listed=True))

    def _report_refused(self, refused: tuple[McpToolName, ...]) -> None:
        for name in refused:
            if name not in self._refused:
                logger.warning(
                    "the tool %r of the MCP server %s is not offered: another tool has the name %s",
                    name.tool,
                    name.server,
                    name.offered,
                )
        self._refused = frozenset(refused)

    async def _define(self, offered: OfferedTools) -> ListedTools:
        found: dict[str, ToolDefinition] = {}
        if offered.resources:
            found[tool_names.READ_RESOURCE] = resources.DEFINITION
        if offered.searched:
            return {**found, **search_tools.DEFINITIONS}
        for server in offered.servers:
            kept = await self._servers.get_list(server.digest)
            wanted = frozenset(server.tools)
            for tool in () if kept is None else kept.tools:
                name = McpToolName(server.server, tool.name).offered
                if name in wanted:
                    found[name] = ToolDefinition(name, tool.description, tool.schema)
            for name in wanted - found.keys():
                # The list is no longer kept: the definition of now is the best there is.
                if name in self._tools:
                    found[name] = self._tools[name].definition
        return found


def _stored(snapshot: str) -> OfferedTools | None:
    entry = system_context.decode_snapshot(snapshot).get(context_source.TOOLS_KEY)
    return None if entry is None else codec.convert(OfferedTools, entry.value)
