"""The files that a Session changed, as diffs, from the recorded changes of its steps.

Each path is compared as it was before its first change in the range with how its last one left it.
What other programs changed is not part of it. Contents are those of the content store; one that is
no longer kept is read from the file, if that is still as the Session left it.
"""

import asyncio
from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.files import revert
from perdure.core.files.file_state import FileState
from perdure.core.files.revert import FileChange, Move
from perdure.host.files.content_store import ContentLostError
from perdure.ports import Transaction
from perdure.runtime.files import step_journal
from perdure.runtime.files.snapshots import FileSnapshots
from perdure.schema.errors import MessageNotFoundError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.session import FileDiff, SessionInfo
from perdure.store.tables import file_change_table, message_table, session_table


class SessionDiffs:
    def __init__(self, snapshots: FileSnapshots) -> None:
        self._database = snapshots.database
        self._store = snapshots.store

    async def diff(
        self,
        session_id: SessionID,
        *,
        first: MessageID | None = None,
        last: MessageID | None = None,
    ) -> tuple[SessionInfo, tuple[FileDiff, ...]]:
        """The Session, and the changes from message `first` to message `last`, both included.

        What a staged revert has undone is left out. Raises MessageNotFoundError.
        """

        async def load(tx: Transaction) -> tuple[SessionInfo, list[FileChange]]:
            session = await session_table.require(tx, session_id)
            begin = await _seq(tx, session_id, first)
            end = await _seq(tx, session_id, last)
            if session.revert is not UNSET:
                boundary = await _seq(tx, session_id, session.revert.message_id)
                end = boundary if end is None or boundary is None else min(end, boundary)
            changes = await file_change_table.list_between(tx, session_id, begin, end)
            return session, changes

        session, changes = await self._database.read(load)
        if not changes:
            return session, ()
        return session, await asyncio.to_thread(self._compare, session, changes)

    def _compare(self, session: SessionInfo, changes: Sequence[FileChange]) -> tuple[FileDiff, ...]:
        root = step_journal.resolve_root(session.location.directory)
        by_path: dict[str, list[FileChange]] = {}
        for change in changes:
            by_path.setdefault(change.path, []).append(change)
        found: list[FileDiff] = []
        room = limits.SESSION_DIFF_BYTES_MAX
        for path in sorted(by_path):
            each = self._compare_path(path, by_path[path], root)
            if each is None:
                continue
            room -= len(each.patch)
            found.append(each if room >= 0 else replace(each, patch=""))
        return tuple(found)

    def _compare_path(self, path: str, changes: Sequence[FileChange], root: str) -> FileDiff | None:
        before, after = changes[0].before, changes[-1].after
        if before.same(after) or "other" in (before.kind, after.kind):
            return None
        name = step_journal.display_path(path, root)
        move = Move(root=changes[-1].root, path=path, base=before, found=after, wanted=after)
        try:
            return revert.diff_move(
                move, name, before=self._content(before, move), after=self._content(after, move)
            )
        except ContentLostError:
            return revert.diff_without_content(move, name)

    def _content(self, state: FileState, move: Move) -> bytes | None:
        """Raises ContentLostError."""
        if state.kind == "unknown":
            raise ContentLostError(f"what {move.path} was is not known")
        if not state.has_content:
            return None
        try:
            return self._store.contents.read(state.digest)
        except ContentLostError:
            # The content that a file tool wrote is kept only as the file itself in old Sessions.
            bytes_max = limits.SNAPSHOT_WRITTEN_BYTES_MAX
            try:
                now = self._store.files.read_state(move.root, move.path, bytes_max=bytes_max)
            except OSError as error:
                raise ContentLostError(f"{move.path} cannot be read") from error
            if not now.same(state):
                raise
            return self._store.contents.read(state.digest)


async def _seq(tx: Transaction, session_id: SessionID, message_id: MessageID | None) -> Seq | None:
    if message_id is None:
        return None
    found = await message_table.get(tx, session_id, message_id)
    if found is None:
        raise MessageNotFoundError(session_id, message_id)
    return found.seq
