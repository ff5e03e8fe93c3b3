"""Approvals that were given for good: by place and scope, in order, once each."""

import pytest

from perdure.schema.approval.permission import ApprovalScope, SavedPlace, Scope
from perdure.schema.ids import ProjectID, SessionID
from perdure.store.log.event_store import EventStore
from perdure.store.tables.approval_table import SavedApprovals
from perdure.testing import SeededIds

ONE, TWO = SessionID("ses_one"), SessionID("ses_two")
HERE = SavedPlace(ProjectID("here"), "a" * 64, "/here")
THERE = SavedPlace(ProjectID("there"), "b" * 64, "/there")
COPY = SavedPlace(ProjectID("here"), "c" * 64, "/copy")
"""A directory that says it is the same project."""
ALWAYS = ApprovalScope(session_id=ONE, agent="build")


async def listed(saved: SavedApprovals, project_id: ProjectID) -> list[tuple[str, str]]:
    found = await saved.list(project_id)
    assert {rule.project_id for rule in found} <= {project_id}
    return [(rule.action, rule.resource) for rule in found]


async def applying(
    saved: SavedApprovals,
    place: SavedPlace,
    *,
    session: SessionID = ONE,
    agent: str = "build",
    now: int = 0,
) -> list[str]:
    found = await saved.list_applying(place.key, session_id=session, agent=agent, now=now)
    return [rule.resource for rule in found]


async def test_approvals_are_listed_in_the_order_in_which_they_were_given(
    store: EventStore,
) -> None:
    saved = SavedApprovals(store.database, SeededIds(1))
    await saved.add(HERE, ALWAYS, action="edit", resources=("z", "a"))
    await saved.add(THERE, ALWAYS, action="edit", resources=("z",))
    await saved.add(HERE, ALWAYS, action="bash", resources=("m", "m"))
    await saved.add(HERE, ALWAYS, action="edit", resources=("a",))
    assert await listed(saved, HERE.project_id) == [("edit", "z"), ("edit", "a"), ("bash", "m")]
    assert await listed(saved, THERE.project_id) == [("edit", "z")]


async def test_an_approval_is_taken_back_alone(store: EventStore) -> None:
    saved = SavedApprovals(store.database, SeededIds(1))
    await saved.add(HERE, ALWAYS, action="edit", resources=("a", "b", "c"))
    middle = (await saved.list(HERE.project_id))[1]
    await saved.remove(middle.id)
    await saved.remove("psv_unknown")
    assert await listed(saved, HERE.project_id) == [("edit", "a"), ("edit", "c")]


async def test_another_place_with_the_same_project_inherits_nothing(store: EventStore) -> None:
    saved = SavedApprovals(store.database, SeededIds(1))
    await saved.add(HERE, ALWAYS, action="bash", resources=("make",))
    assert await applying(saved, HERE) == ["make"]
    assert await applying(saved, COPY) == []
    assert await listed(saved, COPY.project_id) == [("bash", "make")]


@pytest.mark.parametrize(
    ("reach", "counts"),
    [
        ("session", (True, False, True, False)),
        ("agent", (True, True, False, False)),
        ("project", (True, True, True, False)),
        ("global", (True, True, True, True)),
    ],
)
async def test_an_approval_reaches_as_far_as_it_was_given(
    store: EventStore, reach: Scope, counts: tuple[bool, ...]
) -> None:
    saved = SavedApprovals(store.database, SeededIds(1))
    scope = ApprovalScope(session_id=ONE, agent="build", reach=reach)
    await saved.add(HERE, scope, action="bash", resources=("make",))
    found = (
        await applying(saved, HERE),
        await applying(saved, HERE, session=TWO),
        await applying(saved, HERE, agent="plan"),
        await applying(saved, THERE),
    )
    assert tuple(map(bool, found)) == counts
    [rule] = await saved.list(HERE.project_id)
    assert rule.scope == reach


async def test_an_approval_ends_at_its_time_and_can_be_given_again(store: EventStore) -> None:
    saved = SavedApprovals(store.database, SeededIds(1))

    async def allow_until(time: int | None) -> None:
        scope = ApprovalScope(session_id=ONE, agent="build", expires=time)
        await saved.add(HERE, scope, action="bash", resources=("make",))

    await allow_until(1_000)
    assert await applying(saved, HERE, now=999) == ["make"]
    assert await applying(saved, HERE, now=1_000) == []
    await allow_until(None)
    assert await applying(saved, HERE, now=1_000) == ["make"]
    assert len(await saved.list(HERE.project_id)) == 1
