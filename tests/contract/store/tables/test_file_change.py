"""What steps did to files: in order, by Session, and forgotten with the message of its step."""

from functools import partial

from perdure.core.files.file_state import ABSENT, FileState
from perdure.core.files.revert import FileChange
from perdure.ports import Transaction
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.tables import file_change_table, message_table
from tests.fixtures import OTHER, SESSION, Facts, append

FIRST, SECOND, THEIRS = MessageID("msg_1"), MessageID("msg_2"), MessageID("msg_other")


def change(path: str, *, after: FileState = ABSENT) -> FileChange:
    before = FileState("file", f"before {path}", 0o644)
    return FileChange(root="/project", path=path, before=before, after=after)


async def put(
    store: EventStore, message_id: MessageID, path: str, session_id: SessionID = SESSION
) -> int:
    async def job(tx: Transaction) -> int:
        return await file_change_table.insert(
            tx, session_id, message_id, change(path), snapshot=f"after {path}"
        )

    return await store.database.write(job)


async def paths(store: EventStore, *, after: int, session_id: SessionID = SESSION) -> list[str]:
    found = await store.database.read(
        lambda tx: file_change_table.list_after(tx, session_id, Seq(after))
    )
    return [one.path for one in found]


async def latest(store: EventStore, session_id: SessionID) -> str | None:
    return await store.database.read(
        partial(file_change_table.latest_snapshot, session_id=session_id)
    )


async def two_steps(store: EventStore, facts: Facts) -> None:
    """With messages at the sequences 1 and 2, and one of another Session."""
    await append(store, [facts.step(FIRST), facts.step(SECOND)])
    other = Facts(OTHER)
    await append(store, [other.created(), other.step(THEIRS)], OTHER)
    await put(store, SECOND, "b")
    await put(store, FIRST, "c")
    await put(store, THEIRS, "theirs", OTHER)
    await put(store, SECOND, "a")


async def test_changes_are_told_in_the_order_in_which_they_were_made(
    store: EventStore, facts: Facts
) -> None:
    await two_steps(store, facts)
    assert await paths(store, after=0) == ["b", "c", "a"]
    assert await paths(store, after=1) == ["b", "a"]
    assert await paths(store, after=2) == []
    assert await paths(store, after=0, session_id=OTHER) == ["theirs"]
    (found,) = await store.database.read(lambda tx: file_change_table.list_after(tx, OTHER, Seq(0)))
    assert found == change("theirs")


async def test_the_last_change_of_a_session_names_all_of_them(
    store: EventStore, facts: Facts
) -> None:
    assert await latest(store, SESSION) is None
    await two_steps(store, facts)
    assert (await latest(store, SESSION), await latest(store, OTHER)) == ("after a", "after theirs")


async def test_a_change_that_was_not_made_is_taken_out_alone(
    store: EventStore, facts: Facts
) -> None:
    await two_steps(store, facts)
    number = await put(store, SECOND, "not made")
    await store.database.write(lambda tx: file_change_table.remove(tx, number))
    assert await paths(store, after=0) == ["b", "c", "a"]


async def test_changes_go_with_the_message_of_their_step(store: EventStore, facts: Facts) -> None:
    await two_steps(store, facts)

    async def job(tx: Transaction) -> None:
        await message_table.delete_after(tx, SESSION, Seq(1))
        await message_table.delete_after(tx, OTHER, Seq(0))
        await file_change_table.delete_without_message(tx, SESSION)

    await store.database.write(job)
    assert await latest(store, SESSION) == "after c"
    assert await latest(store, OTHER) == "after theirs"


async def test_every_content_that_was_or_came_is_wanted(store: EventStore, facts: Facts) -> None:
    made = change("made", after=FileState("link", "after made"))
    await store.database.write(
        lambda tx: file_change_table.insert(tx, SESSION, FIRST, made, snapshot="s")
    )
    await put(store, FIRST, "gone")
    found = await store.database.read(file_change_table.list_digests)
    assert found == {"before made", "after made", "before gone", ""}
