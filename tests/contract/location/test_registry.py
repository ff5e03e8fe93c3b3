"""Open Locations: one for each ref, quickly there, gone when nobody needs them."""

import asyncio
import time
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.process.runner import LocalProcesses
from perdure.location import factory
from perdure.location.location import Location
from perdure.location.registry import LocationRegistry
from perdure.location.skills.context_source import AgentSkills
from perdure.location.tools import built_in
from perdure.location.tools.built_in import BuiltinTools
from perdure.location.tools.location_tools import ToolServices
from perdure.ports import PermissionAsk
from perdure.schema import codec
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import SessionID, WorkspaceID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.tools.files.mutation import FileMutations
from tests.contract.location.opened_location import Place


class Seconds:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def go_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def locations(place: Place, seconds: Seconds) -> LocationRegistry:
    return LocationRegistry(place.host(), seconds=seconds)


async def test_equal_refs_are_one_location_and_others_are_their_own(
    place: Place, locations: LocationRegistry
) -> None:
    directory = str(place.project)
    one = await locations.get(LocationRef(directory))
    assert await locations.get(LocationRef(directory)) is one
    assert await locations.get(LocationRef(f"{directory}//")) is one
    assert await locations.get(LocationRef(directory, WorkspaceID("wrk_a"))) is not one
    assert await locations.get(LocationRef(str(place.home))) is not one


async def test_those_who_come_first_together_get_the_same_location(
    place: Place, locations: LocationRegistry
) -> None:
    found = await asyncio.gather(*(locations.get(place.ref) for _ in range(50)))
    assert len({id(services) for services in found}) == 1


async def test_an_opener_that_is_cancelled_does_not_stop_the_others(
    place: Place, locations: LocationRegistry
) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        first = group.create_task(locations.get(place.ref))
        second = group.create_task(locations.get(place.ref))
        await asyncio.sleep(0)
        first.cancel()
    assert isinstance(second.result(), Location)


async def test_looking_for_an_open_location_opens_none(
    place: Place, locations: LocationRegistry
) -> None:
    assert locations.get_open(place.ref) is None
    assert locations.get_open(LocationRef("/nowhere/at/all")) is None
    opened = await locations.get(place.ref)
    assert locations.get_open(LocationRef(f"{place.ref.directory}/")) is opened


@pytest.mark.parametrize(
    ("directory", "workspace", "reason"),
    [
        ("relative/path", None, "not an absolute path"),
        ("", None, "not an absolute path"),
        (".", None, "not an absolute path"),
        ("{project}/nowhere", None, "does not exist"),
        ("{project}/file", None, "not a directory"),
        ("{project}/file/below", None, "does not exist"),
        ("{project}/loop", None, "cannot be opened"),
        ("/nul\x00byte", None, "cannot be opened"),
        ("/" + "x" * 5000, None, "cannot be opened"),
        ("/lone\ud800surrogate", None, "cannot be opened"),
        ("/lone\udc80surrogate", None, "does not exist"),
        ("{project}", "bad", "not a workspace id"),
    ],
)
async def test_what_cannot_be_a_location_is_a_bad_request(
    place: Place, locations: LocationRegistry, directory: str, workspace: str | None, reason: str
) -> None:
    (place.project / "file").write_text("x")
    (place.project / "loop").symlink_to(place.project / "loop")
    ref = LocationRef(directory.replace("{project}", str(place.project)))
    if workspace is not None:
        ref = LocationRef(ref.directory, WorkspaceID(workspace))
    with pytest.raises(InvalidRequestError, match=reason) as caught:
        await locations.get(ref)
    assert caught.value.field == "location"
    assert codec.encode(caught.value.wire())


async def test_a_location_is_described_with_its_project(
    place: Place, locations: LocationRegistry
) -> None:
    inner = place.project / "inner"
    inner.mkdir()
    place.git("init")
    place.git("commit", "--allow-empty", "-m", "c")
    root = place.git("rev-list", "--max-parents=0", "HEAD")
    info = await (await locations.get(LocationRef(str(inner)))).info()
    assert (info.directory, info.project.id) == (str(inner), root)
    assert info.project.directory == str(place.project)
    outside = await (await locations.get(LocationRef(str(place.home)))).info()
    assert isinstance(outside, LocationInfo)
    assert (outside.project.id, outside.project.directory) == ("global", "/")


async def test_an_unused_location_closes_after_an_hour(
    place: Place, locations: LocationRegistry, seconds: Seconds
) -> None:
    other = LocationRef(str(place.home))
    first = await locations.get(place.ref)
    first.tools.registry()
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX / 2)
    assert await locations.get(place.ref) is first
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX - 1)
    await locations.get(other)
    assert place.tools_closed == 0
    seconds.go_by(2)
    await locations.get(other)
    assert place.tools_closed == 1
    assert await locations.get(place.ref) is not first


async def test_a_location_that_is_held_or_waited_in_stays(
    place: Place, locations: LocationRegistry, seconds: Seconds
) -> None:
    other = LocationRef(str(place.home))
    ask = PermissionAsk(
        session_id=SessionID("ses_a"),
        agent="build",
        action="external_directory",
        resources=("/etc/*",),
    )
    async with locations.hold(place.ref) as held:
        seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX * 2)
        await locations.get(other)
        assert await locations.get(place.ref) is held
    asked = await held.permissions.ask(ask)
    assert asked.effect == "ask"
    [(ref, event)] = place.published
    assert ref == place.ref
    assert isinstance(event, PermissionRequest)
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX * 2)
    await locations.get(other)
    assert await locations.get(place.ref) is held
    await held.permissions.reply(asked.id, "once")
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX * 2)
    await locations.get(other)
    assert await locations.get(place.ref) is not held


async def test_the_number_of_open_locations_is_bounded(
    place: Place, locations: LocationRegistry, seconds: Seconds
) -> None:
    first = await locations.get(place.ref)
    for index in range(limits.LOCATIONS_OPEN_MAX):
        directory = place.root / f"d{index}"
        directory.mkdir()
        seconds.go_by(1)
        await locations.get(LocationRef(str(directory)))
    assert await locations.get(place.ref) is not first


async def test_closing_the_map_closes_every_location(
    place: Place, locations: LocationRegistry
) -> None:
    for directory in (place.project, place.home):
        (await locations.get(LocationRef(str(directory)))).tools.registry()
    locations.close()
    assert (place.tools_opened, place.tools_closed) == (2, 2)


async def test_opening_is_quick_and_makes_no_tools(place: Place) -> None:
    place.git("init")
    place.git("commit", "--allow-empty", "-m", "c")
    deep = place.project.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    place.configure({"model": "a/b", "providers": {"a": {"models": {"b": {}}}}})
    host, ref = place.host(), LocationRef(str(deep))
    factory.open_location(ref, host)
    taken: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        factory.open_location(ref, place.host())
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.005
    assert place.tools_opened == 0


async def test_the_built_in_tools_are_there_when_a_turn_needs_them(place: Place) -> None:
    filesystem = LocalFilesystem()
    tools = BuiltinTools(
        filesystem=filesystem,
        processes=LocalProcesses(),
        mutations=FileMutations(filesystem),
    )
    opened = factory.open_location(place.ref, place.host())
    site = ToolServices(
        directory=str(place.project),
        settings=opened.settings,
        environment=place.environment,
        permissions=opened.permissions,
        questions=opened.questions,
        skills=AgentSkills(opened.skills, opened.agents.rules),
    )
    with tools(site) as registry:
        assert {"bash", "edit", "question", "read", "write"} <= registry.names()
    assert registry.names() == set()


@pytest.mark.parametrize(
    ("configured", "variable", "shell"),
    [
        ("/opt/zsh", "/bin/bash", "/opt/zsh"),
        (None, "/bin/bash", "/bin/bash"),
        (None, "/usr/bin/fish", "/bin/sh"),
        (None, "bash", "/bin/sh"),
        (None, "", "/bin/sh"),
    ],
)
def test_commands_run_in_the_users_shell_where_it_takes_the_usual_syntax(
    tmp_path: Path, configured: str | None, variable: str, shell: str
) -> None:
    place = Place(tmp_path, SHELL=variable)
    if configured is not None:
        place.configure_user({"shell": configured})
    opened = factory.open_location(place.ref, place.host())
    site = ToolServices(
        directory=str(place.project),
        settings=opened.settings,
        environment=place.environment,
        permissions=opened.permissions,
        questions=opened.questions,
        skills=AgentSkills(opened.skills, opened.agents.rules),
    )
    assert built_in.choose_shell(site) == shell
