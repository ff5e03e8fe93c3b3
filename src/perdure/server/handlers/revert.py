"""Staging, clearing and committing the revert of a Session."""

from typing import Final

from perdure.protocol.session import revert
from perdure.protocol.session.revert import StageRevert
from perdure.schema.session.session import RevertState
from perdure.server.call import Call, Handlers


async def stage(call: Call[None, StageRevert]) -> RevertState:
    body = call.body
    return await call.runtime.sessions.revert.stage(
        call.session_id, body.message_id, files=body.files is not False
    )


async def clear(call: Call[None, None]) -> None:
    await call.runtime.sessions.revert.clear(call.session_id)


async def commit(call: Call[None, None]) -> None:
    await call.runtime.sessions.revert.commit(call.session_id)


HANDLERS: Final[Handlers] = {
    revert.STAGE.operation_id: stage,
    revert.CLEAR.operation_id: clear,
    revert.COMMIT.operation_id: commit,
}
