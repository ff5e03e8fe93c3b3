"""Approvals that were given for good: by project, in order, once each."""

from perdure.schema.ids import ProjectID
from perdure.store.log.event_store import EventStore
from perdure.store.tables.permission_table import SavedPermissions
from perdure.testing import SeededIds

HERE, THERE = ProjectID("here"), ProjectID("there")


async def listed(saved: SavedPermissions, project_id: ProjectID) -> list[tuple[str, str]]:
    found = await saved.list(project_id)
    assert {rule.project_id for rule in found} <= {project_id}
    return [(rule.action, rule.resource) for rule in found]


async def test_approvals_are_listed_in_the_order_in_which_they_were_given(
    store: EventStore,
) -> None:
    saved = SavedPermissions(store.database, SeededIds(1))
    await saved.add(HERE, action="edit", resources=("z", "a"))
    await saved.add(THERE, action="edit", resources=("z",))
    await saved.add(HERE, action="bash", resources=("m", "m"))
    await saved.add(HERE, action="edit", resources=("a",))
    assert await listed(saved, HERE) == [("edit", "z"), ("edit", "a"), ("bash", "m")]
    assert await listed(saved, THERE) == [("edit", "z")]


async def test_an_approval_is_taken_back_alone(store: EventStore) -> None:
    saved = SavedPermissions(store.database, SeededIds(1))
    await saved.add(HERE, action="edit", resources=("a", "b", "c"))
    middle = (await saved.list(HERE))[1]
    await saved.remove(middle.id)
    await saved.remove("psv_unknown")
    assert await listed(saved, HERE) == [("edit", "a"), ("edit", "c")]
