"""A configuration that changes under an open Location: the next use sees it, none is cut off."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.location import factory
from perdure.location.registry import LocationRegistry
from perdure.ports import PermissionAsk, PermissionBlockedError
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import Effect
from perdure.schema.codec import JsonObject
from perdure.schema.ids import SessionID
from perdure.schema.live_event import LiveEvent
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import LocationFolders
from tests.requirements import requirement


def bash(effect: Effect) -> JsonObject:
    return {"permissions": [{"action": "bash", "resource": "*", "effect": effect}]}


def ask(action: str = "bash") -> PermissionAsk:
    return PermissionAsk(
        session_id=SessionID("ses_a"), agent="build", action=action, resources=("x",)
    )


@pytest.fixture
def asked() -> asyncio.Event:
    """Set when something is published, which here is always a request for permission."""
    return asyncio.Event()


@pytest.fixture
def locations(folders: LocationFolders, asked: asyncio.Event) -> LocationRegistry:
    def publish(ref: LocationRef, event: LiveEvent) -> None:
        asked.set()

    return LocationRegistry(replace(folders.host(), publish=publish))


async def test_an_unchanged_configuration_keeps_the_same_services(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    folders.configure({"model": "p/one"})
    first = await locations.get(folders.ref)
    async with locations.hold(folders.ref) as held:
        assert held is first


async def test_the_next_turn_sees_a_change_and_the_running_one_does_not(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    folders.configure({"model": "p/one"})
    async with locations.hold(folders.ref) as running:
        folders.configure({"model": "p/other", "agents": {"new": {}}})
        async with locations.hold(folders.ref) as next_turn:
            assert next_turn.settings.model == ModelRef(id="other", provider_id="p")
            assert next_turn.agents.get("new") is not None
        assert running.settings.model == ModelRef(id="one", provider_id="p")
        assert running.agents.get("new") is None


async def test_an_agent_file_that_appears_is_seen(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    await locations.get(folders.ref)
    folders.write(folders.project / ".opencode" / "agents" / "fresh.md", "Do.")
    assert (await locations.get(folders.ref)).agents.get("fresh") is not None


async def test_a_broken_edit_is_told_once_and_leaves_the_other_documents_in_force(
    folders: LocationFolders, locations: LocationRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    folders.configure_user({"model": "p/mine"})
    folders.configure({"model": "p/theirs"})
    opened = await locations.get(folders.ref)
    folders.configure("{ half written")
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            opened = await locations.get(folders.ref)
    assert opened.settings.model == ModelRef(id="mine", provider_id="p")
    assert len(opened.settings.problems) == 1
    assert len(caplog.records) == 1


async def test_who_waits_for_a_person_goes_on_waiting(
    folders: LocationFolders, locations: LocationRegistry, asked: asyncio.Event
) -> None:
    folders.configure(bash("ask"))
    before = await locations.get(folders.ref)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(before.permissions.require(ask()))
        await asked.wait()
        folders.configure({**bash("ask"), "model": "p/m"})
        after = await locations.get(folders.ref)
        assert after is not before
        [pending] = after.permissions.list()
        assert before.permissions.list() == (pending,)
        await after.permissions.reply(pending.id, PermissionWord(reply="once"))
        await waiting
    assert after.permissions.list() == ()


@requirement("S87")
async def test_a_running_turn_is_judged_by_the_rules_it_began_with(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    folders.configure(bash("allow"))
    async with locations.hold(folders.ref) as running:
        folders.configure(bash("deny"))
        async with locations.hold(folders.ref) as next_turn:
            with pytest.raises(PermissionBlockedError):
                await next_turn.permissions.require(ask())
        await running.permissions.require(ask())


async def test_an_approval_reaches_those_who_wait_under_older_rules(
    folders: LocationFolders, locations: LocationRegistry, asked: asyncio.Event
) -> None:
    folders.configure(bash("ask"))
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        old = await locations.get(folders.ref)
        waiting = group.create_task(old.permissions.require(ask()))
        await asked.wait()
        folders.configure({**bash("ask"), "model": "p/m"})
        new = await locations.get(folders.ref)
        saving = PermissionAsk(
            session_id=SessionID("ses_b"),
            agent="build",
            action="bash",
            resources=("y",),
            save=("*",),
        )
        other = await new.permissions.ask(saving)
        await new.permissions.reply(other.id, PermissionWord(reply="always"))
        await waiting


async def test_tools_of_a_running_turn_are_withdrawn_when_it_ends(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    async with locations.hold(folders.ref) as running:
        before = running.tools.registry()
        folders.configure({"tool_output": {"max_lines": 5}})
        async with locations.hold(folders.ref) as next_turn:
            assert next_turn.tools.registry() is not before
            assert next_turn.output_limits.lines_max == 5
        assert running.tools.registry() is before
        assert (folders.tools_opened, folders.tools_closed) == (2, 0)
    assert (folders.tools_opened, folders.tools_closed) == (2, 1)
    locations.close()
    assert folders.tools_closed == 2


async def test_a_location_whose_directory_vanished_falls_back_to_the_users_documents(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    folders.configure_user({"model": "p/mine"})
    inner = folders.project / "inner"
    folders.write(inner / "opencode.json", {"model": "p/inner"})
    ref = LocationRef(str(inner))
    await locations.get(ref)
    (inner / "opencode.json").unlink()
    inner.rmdir()
    opened = await locations.get(ref)
    assert opened.settings.model == ModelRef(id="mine", provider_id="p")


async def test_many_at_once_see_one_change_once(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    await locations.get(folders.ref)
    folders.configure({"model": "p/new"})
    found = await asyncio.gather(*(locations.get(folders.ref) for _ in range(50)))
    assert len({id(opened) for opened in found}) == 1


async def test_looking_at_an_unchanged_configuration_is_quick(folders: LocationFolders) -> None:
    folders.git("init")
    deep = folders.project.joinpath(*"abcd")
    deep.mkdir(parents=True)
    folders.configure({"model": "p/m"})
    for index in range(10):
        write_agent(folders.project / ".opencode" / "agents" / f"a{index}.md")
    host = folders.host()
    opened = factory.open_location(LocationRef(str(deep)), host)
    assert best_of(50, lambda: factory.refresh_location(opened, host) is opened) < 0.001


def write_agent(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\ndescription: x\n---\nDo.")


def best_of(times: int, look: Callable[[], bool]) -> float:
    taken: list[float] = []
    for _ in range(times):
        start = time.process_time()
        assert look()
        taken.append(time.process_time() - start)
    return min(taken)


async def test_a_repository_that_is_made_later_is_the_project_from_then_on(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    below = folders.project / "below"
    below.mkdir()
    ref = LocationRef(directory=str(below))
    assert (await locations.get(ref)).root == "/"
    folders.git("init")
    after = await locations.get(ref)
    assert after.root == str(folders.project)
    assert await locations.get(ref) is after
