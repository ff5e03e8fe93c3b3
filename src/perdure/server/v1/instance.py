"""The instance in V1: health, log, tools and programs of a directory, and features it lacks."""

import logging
from typing import TYPE_CHECKING, Final

from perdure.protocol.v1 import instance
from perdure.protocol.v1.endpoint import CONTRACT_VERSION
from perdure.protocol.v1.instance import (
    ListV1Tools,
    MoveV1Session,
    V1Adapter,
    V1Console,
    V1FeatureSet,
    V1Formatter,
    V1Health,
    V1LanguageServer,
    V1Tool,
    WriteV1Log,
)
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.location import LocationRef
from perdure.server.call import Call, Handlers
from perdure.server.v1 import location

if TYPE_CHECKING:
    from perdure.server.v1.stream.events import V1Events

client_log: Final = logging.getLogger("perdure.client")
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}
_EXTRA_CHARS_MAX: Final = 2_000


async def health(call: Call[None, None]) -> V1Health:
    return V1Health(healthy=True, version=CONTRACT_VERSION)


async def log(call: Call[None, WriteV1Log]) -> bool:
    """Write a line of a client to the server's log; line breaks and long extras are cut."""
    body = call.body
    extra = "" if not body.extra else codec.encode(body.extra).decode()[:_EXTRA_CHARS_MAX]
    text = " ".join(f"{body.message} {extra}".split())
    client_log.log(_LEVELS[body.level], "%s: %s", " ".join(body.service.split()), text)
    return True


async def capabilities(call: Call[None, None]) -> V1FeatureSet:
    return V1FeatureSet(background_subagents=False)


async def console(call: Call[None, None]) -> V1Console:
    """No account: this server belongs to no organisation."""
    return V1Console((), 0)


async def no_resources(call: Call[None, None]) -> dict[str, JsonObject]:
    """Resources of MCP servers: models ask for them with a tool, and clients cannot."""
    await call.runtime.locations.info(location.resolve(call))
    return {}


async def no_workspaces(call: Call[None, None]) -> tuple[JsonObject, ...]:
    """Remote workspaces; a Session works in a directory of this machine."""
    return ()


async def no_adapters(call: Call[None, None]) -> tuple[V1Adapter, ...]:
    return ()


async def tools(call: Call[ListV1Tools, None]) -> tuple[V1Tool, ...]:
    found = await call.runtime.locations.tools(location.resolve(call))
    return tuple(V1Tool(tool.name, tool.description, tool.input_schema) for tool in found)


async def tool_ids(call: Call[None, None]) -> tuple[str, ...]:
    found = await call.runtime.locations.tools(location.resolve(call))
    return tuple(tool.name for tool in found)


async def language_servers(call: Call[None, None]) -> tuple[V1LanguageServer, ...]:
    """The language servers that were started; each is when a file of its kind is first changed."""
    where = location.resolve(call)
    return tuple(
        V1LanguageServer(it.name, it.name, where.directory, "connected" if it.runs else "error")
        for it in await call.runtime.locations.language_servers(where)
    )


async def formatters(call: Call[None, None]) -> tuple[V1Formatter, ...]:
    programs = (await call.runtime.locations.settings(location.resolve(call))).after_edit
    return tuple(
        V1Formatter(program.name, program.extensions, enabled=True)
        for program in programs.formatters
    )


async def worktrees(call: Call[None, None]) -> tuple[str, ...]:
    """Other roots of the project in which Sessions worked."""
    project = await call.runtime.projects.current(location.resolve(call))
    return tuple(root for root in project.directories if root != project.directory)


async def move_session(call: Call[None, MoveV1Session]) -> None:
    body = call.body
    destination = LocationRef(body.destination.directory)
    await call.runtime.sessions.move(
        body.session_id, destination, changes=body.move_changes is True
    )


class V1Instance:
    """The operations that tell subscribers to load everything again.

    Nothing is ended: the configuration is read again when it has changed, also while Sessions run.
    """

    def __init__(self, events: "V1Events") -> None:
        self._events = events

    async def dispose(self, call: Call[None, None]) -> bool:
        where = location.resolve(call)
        told = {"directory": where.directory}
        self._events.tell("server.instance.disposed", told, where)
        return True

    async def dispose_all(self, call: Call[None, None]) -> bool:
        self._events.tell("global.disposed", {}, None)
        return True


def make_handlers(events: "V1Events") -> Handlers:
    disposing = V1Instance(events)
    return {
        **HANDLERS,
        instance.DISPOSE.operation_id: disposing.dispose,
        instance.DISPOSE_ALL.operation_id: disposing.dispose_all,
    }


HANDLERS: Final[Handlers] = {
    instance.HEALTH.operation_id: health,
    instance.LOG.operation_id: log,
    instance.CAPABILITIES.operation_id: capabilities,
    instance.CONSOLE.operation_id: console,
    instance.RESOURCES.operation_id: no_resources,
    instance.WORKSPACES.operation_id: no_workspaces,
    instance.WORKSPACE_STATUS.operation_id: no_workspaces,
    instance.WORKSPACE_ADAPTERS.operation_id: no_adapters,
    instance.TOOLS.operation_id: tools,
    instance.TOOL_IDS.operation_id: tool_ids,
    instance.LANGUAGE_SERVERS.operation_id: language_servers,
    instance.FORMATTERS.operation_id: formatters,
    instance.WORKTREES.operation_id: worktrees,
    instance.MOVE_SESSION.operation_id: move_session,
}
