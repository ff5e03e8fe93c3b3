"""Steps that change files, and a person who does too: the real journal on a real disk and database.

Everything below the tools and the HTTP interface is the program's own. A step is a message row and
its journal; a revert is planned, carried out and finished as runtime.session.revert does it.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perdure.core.files.revert import RevertPlan
from perdure.ports import Processes, Transaction
from perdure.runtime.files import step_journal
from perdure.runtime.files.revert import FileReverts
from perdure.runtime.files.snapshots import FileSnapshots
from perdure.runtime.files.step_journal import StepJournal
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.store import migrate
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.tables import file_change_table, revert_table


@dataclass
class Alone:
    """Implements ports.Processes: no other process is alive."""

    me: str = "prc_here"

    def alive(self, process: str) -> bool:
        return process == self.me

    def others(self) -> frozenset[str]:
        return frozenset()

    def beat(self) -> None:
        pass

    def silent(self) -> Mapping[str, str]:
        return {}


@dataclass
class SnapshotBench:
    root: Path
    snapshots: FileSnapshots
    files: FileReverts
    session: SessionID = field(default=SessionID("ses_bench"))
    steps: int = 0

    async def step(self, session: SessionID | None = None) -> StepJournal:
        """A new step; its boundary is `before` it, the number of steps so far."""
        self.steps += 1
        owner = session or self.session
        message = MessageID(f"msg_{owner}_{self.steps}")
        row = {"id": message, "session": owner, "seq": self.steps}
        insert = (
            "INSERT INTO session_message (id, session_id, seq, type, time_created, data)"
            " VALUES (:id, :session, :seq, 'assistant', 0, x'7b7d')"
        )
        await self.snapshots.database.write(lambda tx: tx.execute(insert, row))
        start = await self.snapshots.database.read(
            lambda tx: file_change_table.latest_snapshot(tx, owner)
        )
        root = step_journal.resolve_root(str(self.root))
        return StepJournal(self.snapshots, owner, message, root=root, start=start)

    async def write(self, journal: StepJournal, name: str, data: bytes | None) -> None:
        """As a file tool does."""
        path = self.root / name
        async with journal.changing(str(self.root), str(path), data):
            if data is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)

    async def command(self, journal: StepJournal, work: Callable[[], object]) -> None:
        async with journal.watching():
            work()

    async def plan(self, after: int | None, session: SessionID | None = None) -> RevertPlan:
        seq = None if after is None else Seq(after)
        return await self.files.plan(session or self.session, after=seq)

    async def stage(self, after: int, session: SessionID | None = None) -> RevertPlan:
        return await self._applied(session or self.session, await self.plan(after, session))

    async def clear(self) -> RevertPlan:
        return await self._applied(self.session, await self.plan(None))

    async def _applied(self, session: SessionID, plan: RevertPlan) -> RevertPlan:
        async def finish(tx: Transaction) -> None:
            await revert_table.finish(tx, session)

        async with self.files.apply_plan(session, plan):
            await self.snapshots.database.write(finish)
        return plan


@asynccontextmanager
async def snapshot_bench(
    directory: Path, *, processes: Processes | None = None
) -> AsyncGenerator[SnapshotBench]:
    root, data = directory / "tree", directory / "data"
    root.mkdir(parents=True, exist_ok=True)
    data.mkdir(exist_ok=True)
    path = str(data / "p.db")
    migrate.migrate(path)
    async with SqliteDatabase(path) as database:
        here = processes or Alone()
        snapshots = FileSnapshots(str(data), database, here)
        files = FileReverts(snapshots, here)
        yield SnapshotBench(root, snapshots, files)
