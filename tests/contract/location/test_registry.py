"""Open Locations: one for each ref, opened quickly, closed when no longer used."""

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
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import SessionID, WorkspaceID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.tools.files.mutation import FileMutations
from tests.contract.location.opened_location import LocationFolders


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
def locations(folders: LocationFolders, seconds: Seconds) -> LocationRegistry:
    return LocationRegistry(folders.host(), seconds=seconds)


async def test_equal_refs_are_one_location_and_others_are_their_own(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    directory = str(folders.project)
    one = await locations.get(LocationRef(directory))
    assert await locations.get(LocationRef(directory)) is one
    assert await locations.get(LocationRef(f"{directory}//")) is one
    assert await locations.get(LocationRef(directory, WorkspaceID("wrk_a"))) is not one
    assert await locations.get(LocationRef(str(folders.home))) is not one


async def test_those_who_come_first_together_get_the_same_location(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    found = await asyncio.gather(*(locations.get(folders.ref) for _ in range(50)))
    assert len({id(services) for services in found}) == 1


async def test_an_opener_that_is_cancelled_does_not_stop_the_others(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        first = group.create_task(locations.get(folders.ref))
        second = group.create_task(locations.get(folders.ref))
        await asyncio.sleep(0)
        first.cancel()
    assert isinstance(second.result(), Location)


async def test_looking_for_an_open_location_opens_none(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    assert locations.get_open(folders.ref) is None
    assert locations.get_open(LocationRef("/nowhere/at/all")) is None
    opened = await locations.get(folders.ref)
    assert locations.get_open(LocationRef(f"{folders.ref.directory}/")) is opened


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
    folders: LocationFolders,
    locations: LocationRegistry,
    directory: str,
    workspace: str | None,
    reason: str,
) -> None:
    (folders.project / "file").write_text("x")
    (folders.project / "loop").symlink_to(folders.project / "loop")
    ref = LocationRef(directory.replace("{project}", str(folders.project)))
    if workspace is not None:
        ref = LocationRef(ref.directory, WorkspaceID(workspace))
    with pytest.raises(InvalidRequestError, match=reason) as caught:
        await locations.get(ref)
    assert caught.value.field == "location"
    assert codec.encode(caught.value.wire())


async def test_a_location_is_described_with_its_project(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    inner = folders.project / "inner"
    inner.mkdir()
    folders.git("init")
    folders.git("commit", "--allow-empty", "-m", "c")
    root = folders.git("rev-list", "--max-parents=0", "HEAD")
    info = await (await locations.get(LocationRef(str(inner)))).info()
    assert (info.directory, info.project.id) == (str(inner), root)
    assert info.project.directory == str(folders.project)
    outside = await (await locations.get(LocationRef(str(folders.home)))).info()
    assert isinstance(outside, LocationInfo)
    assert (outside.project.id, outside.project.directory) == ("global", "/")


async def test_an_unused_location_closes_after_an_hour(
    folders: LocationFolders, locations: LocationRegistry, seconds: Seconds
) -> None:
    other = LocationRef(str(folders.home))
    first = await locations.get(folders.ref)
    first.tools.registry()
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX / 2)
    assert await locations.get(folders.ref) is first
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX - 1)
    await locations.get(other)
    assert folders.tools_closed == 0
    seconds.go_by(2)
    await locations.get(other)
    assert folders.tools_closed == 1
    assert await locations.get(folders.ref) is not first


async def test_a_location_that_is_held_or_waited_in_stays(
    folders: LocationFolders, locations: LocationRegistry, seconds: Seconds
) -> None:
    other = LocationRef(str(folders.home))
    ask = PermissionAsk(
        session_id=SessionID("ses_a"),
        agent="build",
        action="external_directory",
        resources=("/etc/*",),
    )
    async with locations.hold(folders.ref) as held:
        seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX * 2)
        await locations.get(other)
        assert await locations.get(folders.ref) is held
    asked = await held.permissions.ask(ask)
    assert asked.effect == "ask"
    [(ref, event)] = folders.published
    assert ref == folders.ref
    assert isinstance(event, PermissionRequest)
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX * 2)
    await locations.get(other)
    assert await locations.get(folders.ref) is held
    await held.permissions.reply(asked.id, PermissionWord(reply="once"))
    seconds.go_by(limits.LOCATION_IDLE_SECONDS_MAX * 2)
    await locations.get(other)
    assert await locations.get(folders.ref) is not held


async def test_the_number_of_open_locations_is_bounded(
    folders: LocationFolders, locations: LocationRegistry, seconds: Seconds
) -> None:
    first = await locations.get(folders.ref)
    for index in range(limits.LOCATIONS_OPEN_MAX):
        directory = folders.root / f"d{index}"
        directory.mkdir()
        seconds.go_by(1)
        await locations.get(LocationRef(str(directory)))
    assert await locations.get(folders.ref) is not first


async def test_closing_the_map_closes_every_location(
    folders: LocationFolders, locations: LocationRegistry
) -> None:
    for directory in (folders.project, folders.home):
        (await locations.get(LocationRef(str(directory)))).tools.registry()
    locations.close()
    assert (folders.tools_opened, folders.tools_closed) == (2, 2)


async def test_opening_is_quick_and_makes_no_tools(folders: LocationFolders) -> None:
    folders.git("init")
    folders.git("commit", "--allow-empty", "-m", "c")
    deep = folders.project.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    folders.configure({"model": "a/b", "providers": {"a": {"models": {"b": {}}}}})
    host, ref = folders.host(), LocationRef(str(deep))
    factory.open_location(ref, host)
    taken: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        factory.open_location(ref, folders.host())
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.005
    assert folders.tools_opened == 0


async def test_the_built_in_tools_are_there_when_a_turn_needs_them(
    folders: LocationFolders,
) -> None:
    filesystem = LocalFilesystem()
    tools = BuiltinTools(
        filesystem=filesystem,
        processes=LocalProcesses(),
        mutations=FileMutations(filesystem),
    )
    opened = factory.open_location(folders.ref, folders.host())
    site = ToolServices(
        directory=str(folders.project),
        settings=opened.settings,
        environment=folders.environment,
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
    folders = LocationFolders(tmp_path, SHELL=variable)
    if configured is not None:
        folders.configure_user({"shell": configured})
    opened = factory.open_location(folders.ref, folders.host())
    site = ToolServices(
        directory=str(folders.project),
        settings=opened.settings,
        environment=folders.environment,
        permissions=opened.permissions,
        questions=opened.questions,
        skills=AgentSkills(opened.skills, opened.agents.rules),
    )
    assert built_in.choose_shell(site) == shell
