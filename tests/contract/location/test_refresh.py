"""A configuration that changes under an open Location: the next look sees it, nobody is cut off."""

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
from perdure.schema.approval.permission import Effect
from perdure.schema.codec import JsonObject
from perdure.schema.ids import SessionID
from perdure.schema.live_event import LiveEvent
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import Place
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
def locations(place: Place, asked: asyncio.Event) -> LocationRegistry:
    def publish(ref: LocationRef, event: LiveEvent) -> None:
        asked.set()

    return LocationRegistry(replace(place.host(), publish=publish))


async def test_an_unchanged_configuration_keeps_the_same_services(
    place: Place, locations: LocationRegistry
) -> None:
    place.configure({"model": "p/one"})
    first = await locations.get(place.ref)
    async with locations.hold(place.ref) as held:
        assert held is first


async def test_the_next_turn_sees_a_change_and_the_running_one_does_not(
    place: Place, locations: LocationRegistry
) -> None:
    place.configure({"model": "p/one"})
    async with locations.hold(place.ref) as running:
        place.configure({"model": "p/other", "agents": {"new": {}}})
        async with locations.hold(place.ref) as next_turn:
            assert next_turn.settings.model == ModelRef(id="other", provider_id="p")
            assert next_turn.agents.get("new") is not None
        assert running.settings.model == ModelRef(id="one", provider_id="p")
        assert running.agents.get("new") is None


async def test_an_agent_file_that_appears_is_seen(
    place: Place, locations: LocationRegistry
) -> None:
    await locations.get(place.ref)
    place.write(place.project / ".opencode" / "agents" / "fresh.md", "Do.")
    assert (await locations.get(place.ref)).agents.get("fresh") is not None


async def test_a_broken_edit_is_told_once_and_leaves_the_other_documents_in_force(
    place: Place, locations: LocationRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    place.configure_user({"model": "p/mine"})
    place.configure({"model": "p/theirs"})
    opened = await locations.get(place.ref)
    place.configure("{ half written")
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            opened = await locations.get(place.ref)
    assert opened.settings.model == ModelRef(id="mine", provider_id="p")
    assert len(opened.settings.problems) == 1
    assert len(caplog.records) == 1


async def test_who_waits_for_a_person_goes_on_waiting(
    place: Place, locations: LocationRegistry, asked: asyncio.Event
) -> None:
    place.configure(bash("ask"))
    before = await locations.get(place.ref)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(before.permissions.require(ask()))
        await asked.wait()
        place.configure({**bash("ask"), "model": "p/m"})
        after = await locations.get(place.ref)
        assert after is not before
        [pending] = after.permissions.list()
        assert before.permissions.list() == (pending,)
        await after.permissions.reply(pending.id, "once")
        await waiting
    assert after.permissions.list() == ()


@requirement("S87")
async def test_a_running_turn_is_judged_by_the_rules_it_began_with(
    place: Place, locations: LocationRegistry
) -> None:
    place.configure(bash("allow"))
    async with locations.hold(place.ref) as running:
        place.configure(bash("deny"))
        async with locations.hold(place.ref) as next_turn:
            with pytest.raises(PermissionBlockedError):
                await next_turn.permissions.require(ask())
        await running.permissions.require(ask())


async def test_an_approval_reaches_those_who_wait_under_older_rules(
    place: Place, locations: LocationRegistry, asked: asyncio.Event
) -> None:
    place.configure(bash("ask"))
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        old = await locations.get(place.ref)
        waiting = group.create_task(old.permissions.require(ask()))
        await asked.wait()
        place.configure({**bash("ask"), "model": "p/m"})
        new = await locations.get(place.ref)
        saving = PermissionAsk(
            session_id=SessionID("ses_b"),
            agent="build",
            action="bash",
            resources=("y",),
            save=("*",),
        )
        other = await new.permissions.ask(saving)
        await new.permissions.reply(other.id, "always")
        await waiting


async def test_tools_of_a_running_turn_are_withdrawn_when_it_ends(
    place: Place, locations: LocationRegistry
) -> None:
    async with locations.hold(place.ref) as running:
        before = running.tools.registry()
        place.configure({"tool_output": {"max_lines": 5}})
        async with locations.hold(place.ref) as next_turn:
            assert next_turn.tools.registry() is not before
            assert next_turn.output_limits.lines_max == 5
        assert running.tools.registry() is before
        assert (place.tools_opened, place.tools_closed) == (2, 0)
    assert (place.tools_opened, place.tools_closed) == (2, 1)
    locations.close()
    assert place.tools_closed == 2


async def test_a_location_whose_directory_vanished_falls_back_to_the_users_documents(
    place: Place, locations: LocationRegistry
) -> None:
    place.configure_user({"model": "p/mine"})
    inner = place.project / "inner"
    place.write(inner / "opencode.json", {"model": "p/inner"})
    ref = LocationRef(str(inner))
    await locations.get(ref)
    (inner / "opencode.json").unlink()
    inner.rmdir()
    opened = await locations.get(ref)
    assert opened.settings.model == ModelRef(id="mine", provider_id="p")


async def test_many_at_once_see_one_change_once(place: Place, locations: LocationRegistry) -> None:
    await locations.get(place.ref)
    place.configure({"model": "p/new"})
    found = await asyncio.gather(*(locations.get(place.ref) for _ in range(50)))
    assert len({id(opened) for opened in found}) == 1


async def test_looking_at_an_unchanged_configuration_is_quick(place: Place) -> None:
    place.git("init")
    deep = place.project.joinpath(*"abcd")
    deep.mkdir(parents=True)
    place.configure({"model": "p/m"})
    for index in range(10):
        write_agent(place.project / ".opencode" / "agents" / f"a{index}.md")
    host = place.host()
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
    place: Place, locations: LocationRegistry
) -> None:
    below = place.project / "below"
    below.mkdir()
    ref = LocationRef(directory=str(below))
    assert (await locations.get(ref)).root == "/"
    place.git("init")
    after = await locations.get(ref)
    assert after.root == str(place.project)
    assert await locations.get(ref) is after
