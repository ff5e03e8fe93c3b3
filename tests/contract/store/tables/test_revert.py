"""The files of a staged revert: on their way, there, or back, for one Session at a time."""

from functools import partial

from perdure.core.files.file_state import ABSENT, FileState
from perdure.core.files.revert import Move, StagedFile
from perdure.schema.ids import SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.tables import revert_table
from perdure.store.tables.revert_table import RevertInProgress
from tests.fixtures import OTHER, SESSION, Facts

BASE, WANTED, LATER = (FileState("file", name, 0o600) for name in ("base", "wanted", "later"))


def move(path: str, wanted: FileState = WANTED) -> Move:
    return Move(root="/project", path=path, base=BASE, found=BASE, wanted=wanted)


async def begin(store: EventStore, *moves: Move, session_id: SessionID = SESSION) -> None:
    await store.database.write(
        lambda tx: revert_table.begin(tx, session_id, moves, process=f"prc_{session_id}")
    )


async def finish(store: EventStore, session_id: SessionID = SESSION) -> None:
    await store.database.write(partial(revert_table.finish, session_id=session_id))


async def staged(store: EventStore, session_id: SessionID = SESSION) -> list[StagedFile]:
    return await store.database.read(partial(revert_table.list_staged, session_id=session_id))


async def moving(store: EventStore, session_id: SessionID = SESSION) -> list[RevertInProgress]:
    return await store.database.read(partial(revert_table.list_in_progress, session_id=session_id))


def there(path: str, left: FileState = WANTED) -> StagedFile:
    return StagedFile(root="/project", path=path, base=BASE, staged=left)


def to(path: str, next: FileState = WANTED, origin: FileState = BASE) -> RevertInProgress:
    return RevertInProgress(root="/project", path=path, origin=origin, next=next)


async def test_files_are_on_their_way_until_all_are_there(store: EventStore, facts: Facts) -> None:
    await begin(store, move("b"), move("a", ABSENT))
    await begin(store, move("theirs"), session_id=OTHER)
    assert await moving(store) == [to("a", ABSENT), to("b")]
    assert await staged(store) == []
    assert sorted(await store.database.read(revert_table.list_sessions_in_progress)) == [
        (SESSION, f"prc_{SESSION}"),
        (OTHER, f"prc_{OTHER}"),
    ]
    await finish(store)
    assert await moving(store) == []
    assert await staged(store) == [there("a", ABSENT), there("b")]
    assert await moving(store, OTHER) == [to("theirs")]
    assert await staged(store, OTHER) == []
    assert await store.database.read(revert_table.list_sessions_in_progress) == [
        (OTHER, f"prc_{OTHER}")
    ]


async def test_a_file_that_is_back_where_it_was_is_staged_no_longer(
    store: EventStore, facts: Facts
) -> None:
    await begin(store, move("a"), move("b"))
    await finish(store)
    await begin(store, move("a", BASE))
    await begin(store, move("a", BASE), session_id=OTHER)
    assert await moving(store) == [to("a", BASE, origin=WANTED)]
    await finish(store)
    assert await staged(store) == [there("b")]
    assert await moving(store, OTHER) == [to("a", BASE)]


async def test_a_revert_that_is_abandoned_leaves_what_was_staged_before(
    store: EventStore, facts: Facts
) -> None:
    await begin(store, move("a"))
    await finish(store)
    await begin(store, move("a", LATER), move("b"))
    await begin(store, move("theirs"), session_id=OTHER)
    await store.database.write(partial(revert_table.abandon, session_id=SESSION))
    assert await moving(store) == []
    assert await staged(store) == [there("a")]
    assert await moving(store, OTHER) == [to("theirs")]


async def test_the_files_of_a_revert_that_ended_are_forgotten(
    store: EventStore, facts: Facts
) -> None:
    await begin(store, move("a"))
    await begin(store, move("theirs", LATER), session_id=OTHER)
    assert await store.database.read(revert_table.list_digests) == {"base", "wanted", "later"}
    await store.database.write(partial(revert_table.clear, session_id=SESSION))
    assert (await moving(store), await moving(store, OTHER)) == ([], [to("theirs", LATER)])
    assert await store.database.read(revert_table.list_digests) == {"base", "later"}
