"""A Session goes on in another directory of its project, with its conversation and its prompts."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure import ContextText, PluginHost, Subject
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import PATIENCE_SECONDS, Answer, Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process


class Repository:
    """The project of a place as a git repository, and a second work tree of it."""

    def __init__(self, folders: ProjectFolders) -> None:
        self._place = folders
        self.here = folders.project
        self.there = folders.project.parent / "there"
        (self.here / "pkg").mkdir()
        (self.here / "pkg" / "code.py").write_text("one = 1\n", encoding="utf-8")
        self.git("init", "--initial-branch=main")
        self.git("add", "-A")
        self.git("commit", "-m", "first")
        self.git("worktree", "add", "../there")

    def git(self, *arguments: str, at: Path | None = None) -> str:
        return git(self._place, at or self.here, *arguments)


def git(folders: ProjectFolders, at: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    result = subprocess.run(
        ("git", *identity, *arguments),
        cwd=at,
        env=folders.variables,
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout.strip()


@pytest.fixture
def repository(folders: ProjectFolders) -> Repository:
    return Repository(folders)


@pytest.fixture
async def instance(folders: ProjectFolders, repository: Repository) -> AsyncGenerator[Instance]:
    async with running(folders) as opened:
        yield opened


async def move(api: Api, session: str, to: Path | str, **fields: object) -> Answer:
    body = {"destination": {"directory": str(to)}, **fields}
    return await api.call("POST", f"/api/session/{session}/move", body)


async def moved(api: Api, session: str, to: Path, **fields: object) -> None:
    answer = await move(api, session, to, **fields)
    assert (answer.status, answer.body) == (204, b""), answer.body


async def epoch(api: Api, session: str) -> object:
    return (await provider_context(api, session)).get("epoch")


async def provider_context(api: Api, session: str) -> JsonObject:
    return (await api.get(f"/api/session/{session}/provider-context"))["data"]


def told(provider: ScriptedProvider) -> str:
    """The system text of the last request."""
    return provider.requests[-1].texts("system")[0]


# ---- the Session --------------------------------------------------------------------------------


@requirement("S61", "S62", "S6")
async def test_a_moved_session_goes_on_at_its_destination_with_a_new_baseline(
    api: Api, provider: ScriptedProvider, repository: Repository, folders: ProjectFolders
) -> None:
    (repository.there / "AGENTS.md").write_text("Speak softly.", encoding="utf-8")
    session = await api.create()
    await api.ask(session, "one")
    assert f"Working directory: {repository.here}\n" in told(provider)
    await moved(api, session, repository.there / "pkg")
    after = await api.session(session)
    assert after["location"] == {"directory": str(repository.there / "pkg")}
    assert after["subpath"] == "pkg"
    assert await epoch(api, session) is None
    assert (await api.facts(session))[-1] == "moved"
    await api.ask(session, "two")
    assert f"Working directory: {repository.there}/pkg\n" in told(provider)
    assert str(repository.here) not in told(provider)
    assert "Speak softly." in told(provider)
    admitted = [e for e in await api.history(session) if e["type"].endswith("prompt.admitted")]
    assert [event["location"] for event in admitted] == [
        {"directory": str(repository.here)},
        {"directory": str(repository.there / "pkg")},
    ]
    # The conversation is the same one, and the change of place needs no message: it is baseline.
    assert provider.requests[-1].texts("user") == ["one", "two"]
    assert provider.requests[-1].roles == ["system", "user", "assistant", "user"]
    await database_check.check(folders.database)


@requirement("S61")
async def test_instructions_that_were_discovered_elsewhere_are_forgotten(
    api: Api, provider: ScriptedProvider, repository: Repository
) -> None:
    (repository.here / "pkg" / "AGENTS.md").write_text("Only for pkg.", encoding="utf-8")
    provider.then(calls(Call("read", {"path": "pkg/code.py"})))
    session = await api.create()
    await api.ask(session, "read it")
    assert "Only for pkg." in str(provider.requests[-1].messages)
    await moved(api, session, repository.there)
    await api.ask(session, "go on")
    assert "Only for pkg." not in told(provider)


@requirement("S62")
async def test_tools_work_where_the_session_is(
    api: Api, provider: ScriptedProvider, repository: Repository
) -> None:
    session = await api.create()
    await moved(api, session, repository.there)
    provider.then(calls(Call("write", {"path": "made.txt", "content": "here"})))
    await api.ask(session, "make a file")
    assert (repository.there / "made.txt").read_text() == "here"
    assert not (repository.here / "made.txt").exists()


@requirement("S61")
async def test_a_prompt_that_was_waiting_runs_at_the_destination(
    api: Api, provider: ScriptedProvider, repository: Repository
) -> None:
    session = await api.create()
    await api.ask(session, "one")
    await api.prompt(session, "waiting", resume=False)
    await moved(api, session, repository.there)
    assert len(provider.requests) == 1
    await api.ask(session, "two", delivery="queue")
    assert f"Working directory: {repository.there}\n" in told(provider)
    assert [request.texts("user")[-1] for request in provider.requests] == ["one", "waiting", "two"]


@requirement("S61", "S34")
async def test_nothing_is_promoted_before_the_destination_has_a_whole_baseline(
    api: Api, provider: ScriptedProvider, repository: Repository, folders: ProjectFolders
) -> None:
    session = await api.create()
    await api.ask(session, "one")
    unreadable = Path(folders.variables["HOME"]) / ".config" / "opencode" / "AGENTS.md"
    unreadable.parent.mkdir(parents=True)
    # Not even the superuser can read the first page of a process.
    unreadable.symlink_to("/proc/self/mem")
    await moved(api, session, repository.there)
    await api.prompt(session, "two")
    await api.wait(session)
    assert len(provider.requests) == 1
    assert (await api.facts(session))[-2:] == ["moved", "prompt.admitted"]
    looked = await provider_context(api, session)
    assert looked["pending"] == {"type": "blocked", "keys": ["core/instructions"]}
    assert "core/instructions" in looked["refusal"]
    assert "request" not in looked
    unreadable.unlink()
    await api.ask(session, "three")
    assert f"Working directory: {repository.there}\n" in told(provider)
    assert provider.requests[-1].texts("user") == ["one", "two", "three"]


async def test_to_move_to_where_it_is_writes_nothing(api: Api, repository: Repository) -> None:
    session = await api.create()
    await api.ask(session, "one")
    before = await api.history(session), await api.session(session), await epoch(api, session)
    for same in (repository.here, f"{repository.here}/"):
        assert (await move(api, session, same, moveChanges=True)).status == 204
    after = await api.history(session), await api.session(session), await epoch(api, session)
    assert after == before


async def test_a_session_can_leave_a_directory_that_is_gone(
    folders: ProjectFolders, provider: ScriptedProvider, repository: Repository
) -> None:
    async with running(folders) as before:
        session = await before.api.create(location={"directory": str(repository.there)})
        await before.api.ask(session, "one")
    repository.git("worktree", "remove", "--force", str(repository.there))
    async with running(folders) as after:
        lost = await provider_context(after.api, session)
        assert str(repository.there) in lost["refusal"]
        assert {source["available"] for source in lost["sourceDetails"]} == {False}
        with_changes = await move(after.api, session, repository.here, moveChanges=True)
        assert (with_changes.status, with_changes.json["field"]) == (400, "moveChanges")
        await moved(after.api, session, repository.here)
        await after.api.ask(session, "two")
    assert f"Working directory: {repository.here}\n" in told(provider)


async def test_a_repository_that_became_a_project_later_is_still_the_same(
    api: Api, folders: ProjectFolders
) -> None:
    young = folders.project.parent / "young"
    young.mkdir()
    git(folders, young, "init")
    session = await api.create(location={"directory": str(young)})
    git(folders, young, "commit", "--allow-empty", "-m", "first")
    git(folders, young, "worktree", "add", "../grown")
    await moved(api, session, folders.project.parent / "grown")


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directory", "said"),
    [
        ("relative/path", "absolute"),
        ("", "absolute"),
        ("/no/such/directory", "does not exist"),
        ("{here}/pkg/code.py", "not a directory"),
        ("/a\x00b", "cannot be opened"),
        ("/" + "x" * 100_000, "cannot be opened"),
        ("{outside}", "another project"),
    ],
)
async def test_a_destination_that_cannot_be_one_is_refused(
    api: Api, repository: Repository, tmp_path: Path, directory: str, said: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    session = await api.create()
    before = await api.history(session)
    to = directory.format(here=repository.here, outside=outside)
    answer = await move(api, session, to, moveChanges=True)
    assert (answer.status, answer.tag) == (400, "InvalidRequestError")
    assert answer.json["field"] == "destination"
    assert said in answer.json["message"]
    assert await api.history(session) == before


@pytest.mark.parametrize(
    "body", [{}, {"destination": "/x"}, {"destination": {}}, {"destination": {"directory": 1}}]
)
async def test_a_malformed_move_is_refused(api: Api, body: JsonObject) -> None:
    session = await api.create()
    answer = await api.call("POST", f"/api/session/{session}/move", body)
    assert (answer.status, answer.tag) == (400, "InvalidRequestError")


async def test_a_session_that_does_not_exist_cannot_move(api: Api, repository: Repository) -> None:
    answer = await move(api, "ses_none", repository.there)
    assert (answer.status, answer.tag) == (404, "SessionNotFoundError")


async def test_while_it_runs_a_session_stays(
    api: Api, provider: ScriptedProvider, repository: Repository
) -> None:
    hold = asyncio.Event()
    provider.then(text("slowly", hold=hold))
    session = await api.create()
    await api.prompt(session, "one")
    await provider.arrived(1)
    answer = await move(api, session, repository.there)
    assert (answer.status, answer.tag) == (409, "ConflictError")
    hold.set()
    await api.wait(session)
    await moved(api, session, repository.there)


async def test_with_a_staged_revert_a_session_stays(api: Api, repository: Repository) -> None:
    session = await api.create()
    messages = await api.ask(session, "one")
    await api.post(f"/api/session/{session}/revert/stage", {"messageID": messages[0]["id"]})
    answer = await move(api, session, repository.there)
    assert (answer.status, answer.tag) == (409, "ConflictError")
    assert "revert" in answer.json["message"]
    await api.post(f"/api/session/{session}/revert/clear")
    await moved(api, session, repository.there)


async def test_moves_at_once_leave_the_session_in_one_of_the_places(
    api: Api, provider: ScriptedProvider, repository: Repository, folders: ProjectFolders
) -> None:
    session = await api.create()
    places = [repository.there, repository.there / "pkg", repository.here / "pkg"]
    answers = await asyncio.gather(*(move(api, session, to) for to in places * 4))
    assert {answer.status for answer in answers} <= {204, 409}
    assert 204 in {answer.status for answer in answers}
    last = [event for event in await api.history(session) if event["type"].endswith(".moved")][-1]
    assert (await api.session(session))["location"] == last["data"]["location"]
    await api.ask(session, "one")
    assert f"Working directory: {last['data']['location']['directory']}\n" in told(provider)
    await database_check.check(folders.database)


# ---- with changes -------------------------------------------------------------------------------


def change(repository: Repository) -> None:
    (repository.here / "pkg" / "code.py").write_text("one = 2\n", encoding="utf-8")
    (repository.here / "new.bin").write_bytes(bytes(range(256)))


async def test_uncommitted_changes_come_along(api: Api, repository: Repository) -> None:
    session = await api.create(location={"directory": str(repository.here / "pkg")})
    change(repository)
    await moved(api, session, repository.there / "pkg", moveChanges=True)
    assert (repository.there / "pkg" / "code.py").read_text() == "one = 2\n"
    assert (repository.there / "new.bin").read_bytes() == bytes(range(256))
    assert repository.git("status", "--porcelain") == ""
    assert (await api.session(session))["location"]["directory"] == str(repository.there / "pkg")


@pytest.mark.parametrize("fields", [{}, {"moveChanges": False}, {"moveChanges": None}])
async def test_changes_stay_unless_they_are_asked_for(
    api: Api, repository: Repository, fields: JsonObject
) -> None:
    session = await api.create()
    change(repository)
    await moved(api, session, repository.there, **fields)
    assert (repository.here / "pkg" / "code.py").read_text() == "one = 2\n"
    assert repository.git("status", "--porcelain", at=repository.there) == ""


async def test_within_one_work_tree_changes_are_where_they_belong(
    api: Api, repository: Repository
) -> None:
    session = await api.create()
    change(repository)
    await moved(api, session, repository.here / "pkg", moveChanges=True)
    assert (repository.here / "pkg" / "code.py").read_text() == "one = 2\n"


async def test_changes_that_do_not_fit_keep_the_session_where_it_is(
    api: Api, repository: Repository
) -> None:
    session = await api.create()
    before = await api.history(session)
    change(repository)
    (repository.there / "pkg" / "code.py").write_text("one = 3\n", encoding="utf-8")
    answer = await move(api, session, repository.there, moveChanges=True)
    assert (answer.status, answer.tag) == (409, "ConflictError")
    assert answer.json["resource"] == str(repository.there)
    assert "code.py" in answer.json["message"]
    assert (repository.here / "pkg" / "code.py").read_text() == "one = 2\n"
    assert (repository.there / "pkg" / "code.py").read_text() == "one = 3\n"
    assert not (repository.there / "new.bin").exists()
    assert await api.history(session) == before


async def test_outside_a_repository_there_are_no_changes_to_move(api: Api, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    session = await api.create(location={"directory": str(tmp_path / "one")})
    answer = await move(api, session, tmp_path / "two", moveChanges=True)
    assert (answer.status, answer.json["field"]) == (400, "moveChanges")
    await moved(api, session, tmp_path / "two")


async def test_a_move_that_was_cut_off_after_its_files_can_be_made_again(
    api: Api, repository: Repository
) -> None:
    session = await api.create()
    change(repository)
    # What a process leaves that died before the event was committed.
    for name in ("pkg/code.py", "new.bin"):
        (repository.there / name).write_bytes((repository.here / name).read_bytes())
    await moved(api, session, repository.there, moveChanges=True)
    assert (repository.there / "pkg" / "code.py").read_text() == "one = 2\n"
    assert repository.git("status", "--porcelain") == ""


# ---- several processes --------------------------------------------------------------------------


@requirement("S62", "S147")
async def test_a_run_in_another_process_goes_on_where_the_session_is_now(
    folders: ProjectFolders, provider: ScriptedProvider, repository: Repository
) -> None:
    hold = asyncio.Event()
    provider.then(text("slowly", hold=hold))
    async with running(folders) as a, running(folders) as b:
        session = await a.api.create()
        await a.api.prompt(session, "one")
        await provider.arrived(1)
        await a.api.prompt(session, "two", delivery="queue")
        await moved(b.api, session, repository.there)
        assert "moved" in await a.api.facts(session)
        hold.set()
        await a.api.wait(session)
        assert f"Working directory: {repository.there}\n" in told(provider)
        assert provider.requests[-1].texts("user") == ["one", "two"]
        assert len(provider.requests) == 2
    await database_check.check(folders.database)


@requirement("S62", "S147")
async def test_a_turn_is_not_continued_in_a_directory_it_did_not_begin_in(
    folders: ProjectFolders, provider: ScriptedProvider, repository: Repository
) -> None:
    hold = asyncio.Event()
    provider.then(calls(Call("write", {"path": "made.txt", "content": "x"}), hold=hold))
    async with running(folders) as a, running(folders) as b:
        session = await a.api.create()
        await a.api.prompt(session, "one")
        await provider.arrived(1)
        await moved(b.api, session, repository.there)
        hold.set()
        await a.api.wait(session)
        # The call ends where its turn was; what would have come next is left to a person.
        assert (repository.here / "made.txt").exists()
        assert len(provider.requests) == 1
        assert await epoch(a.api, session) is None
        await b.api.prompt(session, "go on")
        async with b.api.events(session) as stream:
            await stream.until("step.ended")
            await stream.until("step.ended")
        assert f"Working directory: {repository.there}\n" in told(provider)
    await database_check.check(folders.database)


class Pausing:
    """A plugin whose look at the world takes as long as the test likes."""

    name = "pausing"

    def __init__(self) -> None:
        self.looking = asyncio.Event()
        self.go_on = asyncio.Event()

    def setup(self, host: PluginHost) -> None:
        host.context("now", self.look)

    async def look(self, subject: Subject) -> tuple[ContextText, ...]:
        self.looking.set()
        await self.go_on.wait()
        return (ContextText(key="pausing/now", text="It is now."),)


@requirement("S61", "S62", "S147")
async def test_moved_while_its_old_location_is_looked_at_a_prompt_is_promoted_at_the_new_one(
    folders: ProjectFolders, provider: ScriptedProvider, repository: Repository
) -> None:
    plugin = Pausing()
    async with running(folders) as a, running(folders) as b:
        a.runtime.plugins.add(plugin)
        session = await a.api.create()
        await a.api.prompt(session, "one")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await plugin.looking.wait()
        await moved(b.api, session, repository.there)
        plugin.go_on.set()
        await a.api.wait(session)
        assert (await a.api.facts(session))[:3] == ["prompt.admitted", "moved", "prompted"]
        assert f"Working directory: {repository.there}\n" in told(provider)
        assert len(provider.requests) == 1
    await database_check.check(folders.database)


@requirement("S61", "S147")
async def test_another_server_finds_a_moved_session_at_its_destination(
    folders: ProjectFolders, provider: ScriptedProvider, repository: Repository
) -> None:
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        await a.api.ask(session, "one")
        await moved(b.api, session, repository.there)
        await a.api.ask(session, "two")
        assert f"Working directory: {repository.there}\n" in told(provider)
        assert "Traceback" not in a.log + b.log


async def test_a_killed_server_has_lost_no_changes(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    # Stopped at many moments: the changes are always whole in at least one of the work trees.
    for number in range(5):
        folders = make_folders(tmp_path / str(number), provider)
        repository = Repository(folders)
        change(repository)
        async with server_process(folders, str(number)) as server:
            session = await server.api.create()
            moving = asyncio.create_task(
                move(server.api, session, repository.there, moveChanges=True)
            )
            for _ in range(number):
                # Each look is answered a little later in the move.
                await server.api.session(session)
            await server.kill()
            await asyncio.gather(moving, return_exceptions=True)
        assert any(
            (at / "pkg" / "code.py").read_text() == "one = 2\n"
            and (at / "new.bin").read_bytes() == bytes(range(256))
            for at in (repository.here, repository.there)
            if (at / "new.bin").exists()
        )
        await database_check.check(folders.database)
