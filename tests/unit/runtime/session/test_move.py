"""A move that is disturbed half way: the event is there or it is not, and no change is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from perdure.location.project.git_changes import GitChanges
from perdure.location.registry import LocationRegistry
from perdure.runtime.session.move import SessionMoves
from perdure.schema.errors import DomainError, MoveConflictError, SessionNotFoundError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session import event as events
from perdure.schema.session.session import RevertState
from perdure.store.log.event_store import EventStore
from perdure.store.tables import session_table
from perdure.testing import ManualClock
from tests.contract.location.opened_location import LocationFolders
from tests.fixtures import SESSION, Facts, append, opened_store
from tests.support.watched_processes import WatchedProcesses

Disturbance = Callable[[], Awaitable[None]]


class DisturbedProcesses(WatchedProcesses):
    """What a test has in mind happens before a git command of that name."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, Disturbance] = {}

    async def starting(self, arguments: Sequence[str], seconds: float) -> float:
        for command in self.before.keys() & {*arguments}:
            await self.before.pop(command)()
        return seconds


class Scene:
    """A Session in a work tree with one change, and a second work tree to go to."""

    def __init__(self, folders: LocationFolders, store: EventStore) -> None:
        self.store = store
        self.here, self.there = folders.project, folders.root / "there"
        folders.git("init")
        folders.write(self.here / "a.txt", "one\n")
        folders.git("add", "-A")
        folders.git("commit", "-m", "first")
        folders.git("worktree", "add", "../there")
        folders.write(self.here / "a.txt", "two\n")
        folders.write(self.here / "b.txt", "new\n")
        self.processes = DisturbedProcesses()
        self.moves = SessionMoves(
            store,
            LocationRegistry(folders.host()),
            GitChanges(self.processes, folders.variables),
            ManualClock(),
        )

    async def move(self) -> DomainError | None:
        to = LocationRef(directory=str(self.there))
        return await self.moves.move(SESSION, destination=to, changes=True)

    async def where(self) -> str:
        session = await self.store.database.read(lambda tx: session_table.require(tx, SESSION))
        return session.location.directory

    def changed(self, at: Path) -> bool:
        """Whether the changes are there, whole; False when nothing of them is."""
        new = (at / "b.txt").exists()
        edited = (at / "a.txt").read_text() == "two\n"
        assert new == edited
        return new


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    (tmp_path / "machine").mkdir()
    async with opened_store(tmp_path / "p.db") as store:
        scene = Scene(LocationFolders(tmp_path / "machine"), store)
        await append(store, [Facts().created()])
        first = events.Moved(
            timestamp=1, session_id=SESSION, location=LocationRef(directory=str(scene.here))
        )
        await append(store, [first])
        yield scene


async def test_undisturbed_the_changes_follow_the_session(scene: Scene) -> None:
    assert await scene.move() is None
    assert await scene.where() == str(scene.there)
    assert (scene.changed(scene.here), scene.changed(scene.there)) == (False, True)


async def test_a_revert_that_is_staged_meanwhile_takes_everything_back(scene: Scene) -> None:
    async def stage() -> None:
        staged = RevertState(message_id=MessageID("msg_1"))
        fact = events.RevertStaged(timestamp=2, session_id=SESSION, revert=staged)
        await append(scene.store, [fact])

    scene.processes.before["apply"] = stage
    refused = await scene.move()
    assert isinstance(refused, MoveConflictError)
    assert "revert" in refused.message
    assert await scene.where() == str(scene.here)
    assert (scene.changed(scene.here), scene.changed(scene.there)) == (True, False)


@pytest.mark.parametrize("command", ["apply", "read-tree"])
async def test_an_interrupt_does_not_cut_a_move_in_half(scene: Scene, command: str) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        reached.set()
        await go_on.wait()

    scene.processes.before[command] = pause
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        moving = group.create_task(scene.move())
        await reached.wait()
        moving.cancel()
        go_on.set()
    assert moving.cancelled()
    assert await scene.where() == str(scene.there)
    assert (scene.changed(scene.here), scene.changed(scene.there)) == (False, True)


async def test_an_interrupt_before_anything_was_made_leaves_everything(scene: Scene) -> None:
    reached = asyncio.Event()

    async def pause() -> None:
        reached.set()
        await asyncio.Event().wait()

    scene.processes.before["write-tree"] = pause
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        moving = group.create_task(scene.move())
        await reached.wait()
        moving.cancel()
    assert await scene.where() == str(scene.here)
    assert (scene.changed(scene.here), scene.changed(scene.there)) == (True, False)


async def test_what_is_edited_again_meanwhile_stays_in_both_places(scene: Scene) -> None:
    async def edit() -> None:
        (scene.here / "b.txt").write_text("newer\n", encoding="utf-8")

    scene.processes.before["read-tree"] = edit
    assert await scene.move() is None
    assert await scene.where() == str(scene.there)
    assert (scene.changed(scene.here), scene.changed(scene.there)) == (True, True)
    assert (scene.here / "b.txt").read_text() == "newer\n"


async def test_a_session_that_does_not_exist_is_an_answer_and_no_defect(scene: Scene) -> None:
    to = LocationRef(directory=str(scene.there))
    refused = await scene.moves.move(SessionID("ses_none"), destination=to, changes=False)
    assert isinstance(refused, SessionNotFoundError)
