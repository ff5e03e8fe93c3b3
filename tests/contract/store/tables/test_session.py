"""Sessions as their table finds them: by family, by filter, in pages, and one at a time."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from perdure.ports import Transaction
from perdure.schema import codec
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import MessageID, ProjectID, Seq, SessionID, WorkspaceID
from perdure.schema.session.event import Archived, Renamed, RevertCleared, RevertStaged, Unarchived
from perdure.schema.session.session import RevertState, SessionTime
from perdure.store.log import projector
from perdure.store.log.event_store import EventStore
from perdure.store.tables import session_table
from perdure.store.tables.session_table import SessionFilter, SessionPlace, SessionRow
from tests.fixtures import OTHER, SESSION, Facts, append, rows

T = TypeVar("T")
NOBODY = SessionID("ses_unknown")


async def make(
    store: EventStore,
    name: str,
    *,
    below: str | None = None,
    at: int = 1,
    title: str = "Chosen",
    directory: str = "/project",
    workspace: str | None = None,
    project: str = "global",
    path: str = "",
) -> Facts:
    """A Session that was created as told."""
    facts = Facts(SessionID(f"ses_{name}"))
    made = facts.created()
    seed = replace(
        made.info,
        title=title,
        directory=directory,
        path=path,
        project_id=ProjectID(project),
        workspace_id=UNSET if workspace is None else WorkspaceID(workspace),
        parent_id=UNSET if below is None else SessionID(f"ses_{below}"),
        time=SessionTime(created=at, updated=at),
    )
    await append(store, [replace(made, info=seed)], facts.session_id)
    return facts


async def read(store: EventStore, job: Callable[[Transaction], Awaitable[T]]) -> T:
    return await store.database.read(job)


async def page(
    store: EventStore,
    *,
    wanted: SessionFilter | None = None,
    newest_first: bool = False,
    limit: int = 9,
    anchor: SessionPlace | None = None,
) -> list[str]:
    found = await found_page(
        store, wanted=wanted, newest_first=newest_first, limit=limit, anchor=anchor
    )
    return [row.id.removeprefix("ses_") for row in found]


async def found_page(
    store: EventStore,
    *,
    wanted: SessionFilter | None = None,
    newest_first: bool = False,
    limit: int = 9,
    anchor: SessionPlace | None = None,
) -> list[SessionRow]:
    return await read(
        store,
        lambda tx: session_table.page(
            tx, wanted or SessionFilter(), newest_first=newest_first, limit=limit, anchor=anchor
        ),
    )


async def family_tree(store: EventStore) -> None:
    """root over left (over leaf) and right; a root of others; one whose parent is not here."""
    for name, parent in (
        ("root", None),
        ("right", "root"),
        ("left", "root"),
        ("leaf", "left"),
        ("stranger", None),
        ("strange", "stranger"),
        ("orphan", "gone"),
        ("below", "orphan"),
    ):
        await make(store, name, below=parent)


async def test_a_family_is_found_from_each_of_its_members(store: EventStore) -> None:
    await family_tree(store)
    for member in ("root", "left", "leaf"):
        found = await read(
            store, lambda tx, m=member: session_table.load_family(tx, SessionID(f"ses_{m}"))
        )
        assert {one.id for one in found} == {"ses_root", "ses_left", "ses_right", "ses_leaf"}
    for member in ("orphan", "below"):
        found = await read(
            store, lambda tx, m=member: session_table.load_family(tx, SessionID(f"ses_{m}"))
        )
        assert {one.id for one in found} == {"ses_orphan", "ses_below"}
    assert await read(store, lambda tx: session_table.load_family(tx, NOBODY)) == []


async def test_who_is_above_and_below_a_session(store: EventStore) -> None:
    await family_tree(store)
    root, left, leaf = (SessionID(f"ses_{name}") for name in ("root", "left", "leaf"))
    assert await read(store, lambda tx: session_table.children(tx, root)) == ["ses_right", left]
    assert set(await read(store, lambda tx: session_table.descendants(tx, root))) == {
        "ses_right",
        left,
        leaf,
    }
    assert await read(store, lambda tx: session_table.descendants(tx, leaf)) == []
    assert await read(store, lambda tx: session_table.ancestors(tx, leaf)) == [left, root]
    assert await read(store, lambda tx: session_table.ancestors(tx, root)) == []


async def test_pages_of_sessions_are_in_the_order_of_their_creation(store: EventStore) -> None:
    for name, at in (("b", 2), ("a", 2), ("c", 2), ("new", 3), ("old", 1)):
        await make(store, name, at=at)
    rows = await found_page(store)
    old, b, a, _, new = (SessionPlace(row.time_created, row.place, row.id) for row in rows)
    assert await page(store) == ["old", "b", "a", "c", "new"]
    assert await page(store, newest_first=True) == ["new", "c", "a", "b", "old"]
    assert await page(store, limit=2) == ["old", "b"]
    assert await page(store, limit=2, anchor=b) == ["a", "c"]
    assert await page(store, newest_first=True, limit=1, anchor=a) == ["b"]
    assert await page(store, newest_first=True, anchor=old) == []
    assert await page(store, anchor=new) == []


async def test_a_page_goes_on_where_a_session_was_that_is_deleted_by_now(
    store: EventStore,
) -> None:
    for name in ("b", "a", "c"):
        await make(store, name)
    gone = (await found_page(store))[1]
    anchor = SessionPlace(gone.time_created, gone.place, gone.id)
    await store.database.write(
        lambda tx: tx.execute("DELETE FROM session WHERE id = :id", {"id": gone.id})
    )
    assert await page(store, anchor=anchor) == ["c"]
    assert await page(store, newest_first=True, anchor=anchor) == ["b"]


async def test_sessions_of_one_millisecond_keep_their_order_when_projections_are_rebuilt(
    store: EventStore,
) -> None:
    for name in ("b", "a", "c"):
        await make(store, name)
    await projector.rebuild(store.database)
    assert await page(store) == ["b", "a", "c"]


async def test_sessions_are_filtered_by_what_they_are(store: EventStore) -> None:
    await make(store, "plain", title="Fix 100% of it", path="src")
    await make(store, "other", title="fix 1000 of it", directory="/other", project="p")
    kept = await make(store, "kept", title="a_b\\c", workspace="wrk_w")
    await append(store, [kept.stamped(Archived)], kept.session_id)
    for wanted, found in (
        (SessionFilter(directory="/other"), ["other"]),
        (SessionFilter(project="p"), ["other"]),
        (SessionFilter(workspace="wrk_w"), ["kept"]),
        (SessionFilter(subpath="src"), ["plain"]),
        (SessionFilter(archived=True), ["kept"]),
        (SessionFilter(archived=False), ["plain", "other"]),
        (SessionFilter(search="FIX"), ["plain", "other"]),
        (SessionFilter(search="100%"), ["plain"]),
        (SessionFilter(search="a_b\\"), ["kept"]),
        (SessionFilter(search="_"), ["kept"]),
        (SessionFilter(search="fix", project="p"), ["other"]),
        (SessionFilter(search="fix", workspace="wrk_w"), []),
        (SessionFilter(search=""), ["plain", "other", "kept"]),
    ):
        assert await page(store, wanted=wanted) == found, wanted


async def test_a_row_that_cannot_be_read_is_left_out_of_a_full_page(store: EventStore) -> None:
    for number in range(6):
        await make(store, str(number), at=number)
    for spoilt in ("ses_1", "ses_2", "ses_5"):
        await store.database.write(
            lambda tx, one=spoilt: tx.execute(
                "UPDATE session SET data = x'7b' WHERE id = :id", {"id": one}
            )
        )
    assert await page(store, limit=2) == ["0", "3"]
    assert await page(store, limit=9) == ["0", "3", "4"]
    assert await page(store, newest_first=True, limit=2) == ["4", "3"]


async def test_only_a_session_that_was_put_away_is_archived(
    store: EventStore, facts: Facts
) -> None:
    other = Facts(OTHER)
    await append(store, [other.created()], OTHER)
    await append(store, [facts.stamped(Archived)])
    assert await read(store, lambda tx: session_table.is_archived(tx, SESSION))
    assert not await read(store, lambda tx: session_table.is_archived(tx, OTHER))
    await append(store, [facts.stamped(Unarchived)])
    assert not await read(store, lambda tx: session_table.is_archived(tx, SESSION))


async def test_only_a_session_with_a_staged_revert_is_reverting(
    store: EventStore, facts: Facts
) -> None:
    other = Facts(OTHER)
    await append(store, [other.created()], OTHER)

    async def reverting() -> tuple[bool, bool]:
        return (
            await read(store, lambda tx: session_table.is_reverting(tx, SESSION)),
            await read(store, lambda tx: session_table.is_reverting(tx, OTHER)),
        )

    assert await reverting() == (False, False)
    staged = facts.stamped(RevertStaged, revert=RevertState(message_id=MessageID("msg_1")))
    await append(store, [staged])
    assert await reverting() == (True, False)
    await append(store, [facts.stamped(RevertCleared)])
    assert await reverting() == (False, False)


async def test_a_title_counts_as_changed_once_it_was(store: EventStore, facts: Facts) -> None:
    other = Facts(OTHER)
    await append(store, [other.created(), other.told("msg_o"), other.told("msg_p")], OTHER)
    await append(store, [facts.told("msg_1"), facts.stamped(Renamed, title="Mine")])

    async def renamed(before: int, session_id: SessionID = SESSION) -> bool:
        return await read(
            store, lambda tx: session_table.was_renamed(tx, session_id, before=Seq(before))
        )

    assert [await renamed(2), await renamed(3), await renamed(9, OTHER)] == [False, True, False]


async def test_a_change_of_one_session_leaves_the_others_alone(
    store: EventStore, facts: Facts
) -> None:
    other = Facts(OTHER)
    await append(store, [other.created()], OTHER)
    before = await rows(store, f"SELECT * FROM session WHERE id = '{OTHER}'")
    await append(store, [facts.stamped(Renamed, title="Mine")])
    assert await rows(store, f"SELECT * FROM session WHERE id = '{OTHER}'") == before
    found = await read(store, lambda tx: session_table.require(tx, SESSION))
    assert (found.id, found.title) == (SESSION, "Mine")
    stored = await read(store, lambda tx: session_table.load_json(tx, SESSION))
    assert stored == codec.encode(found)


async def test_of_an_unknown_session_there_is_nothing(store: EventStore, facts: Facts) -> None:
    assert await read(store, lambda tx: session_table.load_json(tx, NOBODY)) is None
    assert await read(store, lambda tx: session_table.load(tx, NOBODY)) is None
    with pytest.raises(SessionNotFoundError):
        await read(store, lambda tx: session_table.require(tx, NOBODY))
