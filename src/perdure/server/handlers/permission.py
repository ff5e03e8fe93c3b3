"""Permission requests of Sessions and Locations, and the approvals of a project."""

from collections.abc import Mapping
from typing import Final

from msgspec import UNSET

from perdure.protocol.approval import permission
from perdure.protocol.approval.permission import CreatePermission, ListSaved, ReplyPermission
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import (
    PermissionDecision,
    PermissionInput,
    PermissionRequest,
    SavedRule,
)
from perdure.schema.ids import PermissionID
from perdure.server.call import Call, Handlers


async def create(call: Call[None, CreatePermission]) -> PermissionDecision:
    body = call.body
    given = PermissionInput(
        action=body.action,
        resources=body.resources,
        save=UNSET if body.save is None else body.save,
        metadata=UNSET if body.metadata is None else body.metadata,
        source=UNSET if body.source is None else body.source,
    )
    return await call.runtime.permissions.create(
        call.session_id, given, id=body.id, agent=body.agent
    )


async def list_of_session(call: Call[None, None]) -> tuple[PermissionRequest, ...]:
    return await call.runtime.permissions.list(call.session_id)


async def get(call: Call[None, None]) -> PermissionRequest:
    return await call.runtime.permissions.get(call.session_id, _request_id(call.params))


async def reply(call: Call[None, ReplyPermission]) -> None:
    body = call.body
    word = PermissionWord(
        reply=body.reply,
        message=body.message or UNSET,
        scope=body.scope or UNSET,
        seconds=body.seconds or UNSET,
    )
    await call.runtime.permissions.reply(call.session_id, _request_id(call.params), word)


async def list_requests(call: Call[None, None]) -> tuple[PermissionRequest, ...]:
    return await call.runtime.permissions.pending(call.location())


async def list_saved(call: Call[ListSaved, None]) -> tuple[SavedRule, ...]:
    project = call.query.project_id
    if not project:
        project = (await call.runtime.locations.info(call.location())).project.id
    return await call.runtime.permissions.saved(project)


async def remove_saved(call: Call[None, None]) -> None:
    await call.runtime.permissions.remove_saved(call.params["id"])


def _request_id(params: Mapping[str, str]) -> PermissionID:
    return PermissionID(params["requestID"])


HANDLERS: Final[Handlers] = {
    permission.CREATE.operation_id: create,
    permission.LIST.operation_id: list_of_session,
    permission.GET.operation_id: get,
    permission.REPLY.operation_id: reply,
    permission.LIST_REQUESTS.operation_id: list_requests,
    permission.LIST_SAVED.operation_id: list_saved,
    permission.REMOVE_SAVED.operation_id: remove_saved,
}
