"""The Sessions that a Session's subagents work in."""

from typing import Final

from perdure.protocol.session import children
from perdure.server.call import Call, Handlers
from perdure.server.response import JsonArray


async def of_session(call: Call[None, None]) -> JsonArray:
    return JsonArray(await call.services.children.list_children(call.session_id))


HANDLERS: Final[Handlers] = {children.LIST.operation_id: of_session}
