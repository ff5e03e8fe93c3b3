"""The version control of a Location."""

from typing import Final

from perdure.protocol.files import vcs
from perdure.protocol.files.vcs import DiffFiles
from perdure.schema.files.vcs import FileStatus, VcsInfo
from perdure.schema.session.session import FileDiff
from perdure.server.call import Call, Handlers


async def get(call: Call[None, None]) -> VcsInfo:
    return await call.runtime.vcs.info(call.location())


async def status(call: Call[None, None]) -> tuple[FileStatus, ...]:
    return await call.runtime.vcs.status(call.location())


async def diff(call: Call[DiffFiles, None]) -> tuple[FileDiff, ...]:
    return await call.runtime.vcs.diff(call.location(), call.query.base or "head")


HANDLERS: Final[Handlers] = {
    vcs.GET.operation_id: get,
    vcs.STATUS.operation_id: status,
    vcs.DIFF.operation_id: diff,
}
