"""A Session as a whole: rename, archive, fork, delete, resume; a snapshot and the diff of it."""

from typing import Final

from msgspec import Raw

from perdure.core import limits
from perdure.protocol import cursor
from perdure.protocol.cursor import MessageCursor
from perdure.protocol.session import changes, diff, shell
from perdure.protocol.session.changes import ForkSession, RenameSession, TakeSnapshot
from perdure.protocol.session.diff import DiffSession
from perdure.protocol.session.shell import RunShellCommand
from perdure.schema import codec
from perdure.schema.session.message import ShellMessage
from perdure.schema.session.session import FileDiff, SessionInfo
from perdure.schema.session.snapshot import SessionSnapshot
from perdure.server.call import Call, Handlers
from perdure.server.results import Encoded


async def rename(call: Call[None, RenameSession]) -> SessionInfo:
    return await call.runtime.changes.rename(call.session_id, call.body.title)


async def delete(call: Call[None, None]) -> None:
    await call.runtime.deletions.delete(call.session_id)


async def archive(call: Call[None, None]) -> None:
    await call.runtime.changes.archive(call.session_id)


async def unarchive(call: Call[None, None]) -> None:
    await call.runtime.changes.unarchive(call.session_id)


async def fork(call: Call[None, ForkSession]) -> SessionInfo:
    body = call.body
    return await call.runtime.forks.fork(
        call.session_id, id=body.id, message_id=body.message_id, seq=body.seq
    )


async def resume(call: Call[None, None]) -> None:
    await call.runtime.changes.resume(call.session_id)


async def snapshot(call: Call[TakeSnapshot, None]) -> Encoded[SessionSnapshot]:
    limit = call.query.limit or limits.PAGE_ITEMS_DEFAULT
    live = call.runtime.hub.answers.capture(call.session_id)
    found = await call.runtime.snapshots.take(call.session_id, limit=limit)
    links: dict[str, str] = {}
    if found.has_previous:
        sealed = MessageCursor(
            session_id=call.session_id,
            order="asc",
            limit=limit,
            direction="previous",
            seq=found.messages[0].seq,
        )
        links["previous"] = cursor.seal(sealed, key=call.settings.cursor_key)
    # The stored JSON goes out as it is: a SessionSnapshot would have to be decoded first.
    told = {
        "session": Raw(found.session),
        "messages": [
            Raw(row.data if live is None else live.show(row.id, row.data)) for row in found.messages
        ],
        "inbox": found.inbox,
        "seq": found.seq,
        "cursor": links,
    }
    return Encoded(codec.encode(told))


async def run_shell(call: Call[None, RunShellCommand]) -> ShellMessage:
    return await call.runtime.shells.run(call.session_id, call.body.command, id=call.body.id)


async def get_diff(call: Call[DiffSession, None]) -> tuple[FileDiff, ...]:
    asked = call.query
    session, found = await call.runtime.session_diffs.diff(
        call.session_id, first=asked.first, last=asked.last
    )
    return await call.runtime.files.hide_denied(session.location, found)


HANDLERS: Final[Handlers] = {
    diff.GET.operation_id: get_diff,
    shell.RUN.operation_id: run_shell,
    changes.RENAME.operation_id: rename,
    changes.DELETE.operation_id: delete,
    changes.ARCHIVE.operation_id: archive,
    changes.UNARCHIVE.operation_id: unarchive,
    changes.FORK.operation_id: fork,
    changes.RESUME.operation_id: resume,
    changes.SNAPSHOT.operation_id: snapshot,
}
