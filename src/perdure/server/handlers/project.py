"""The projects of an instance."""

from typing import Final

from perdure.protocol import project
from perdure.schema.location import ProjectInfo
from perdure.server.call import Call, Handlers


async def list_projects(call: Call[None, None]) -> tuple[ProjectInfo, ...]:
    return await call.runtime.projects.list(call.location())


async def current(call: Call[None, None]) -> ProjectInfo:
    return await call.runtime.projects.current(call.location())


HANDLERS: Final[Handlers] = {
    project.LIST.operation_id: list_projects,
    project.CURRENT.operation_id: current,
}
