"""A request that may have reached a provider when the server was killed is sent again only if the
configuration, or a person, says so."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from perdure.core import limits
from perdure.core.session import recovery
from perdure.schema.codec import JsonObject, JsonValue
from tests.requirements import requirement
from tests.support import database_check, fork_server
from tests.support.api import Api, Stream
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Reply, ScriptedProvider, text
from tests.support.server_process import server_process


def silent() -> Reply:
    """Takes the request, and says nothing."""
    return Reply(pieces=(asyncio.Event(),))


@asynccontextmanager
async def restarted(folders: ProjectFolders) -> AsyncGenerator[Api]:
    async with server_process(folders, "restarted") as server:
        yield server.api
    assert "Traceback" not in server.log, server.log
    await database_check.check(folders.database)


@pytest.fixture
def asking(folders: ProjectFolders) -> ProjectFolders:
    """A place whose user wants to be asked."""
    configure(folders, "ask")
    return folders


def configure(folders: ProjectFolders, policy: str) -> None:
    folder = folders.project.parent / "home" / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(f'{{"experimental": {{"recovery": "{policy}"}}}}')


async def killed_with_a_request_out(folders: ProjectFolders, provider: ScriptedProvider) -> str:
    """A Session whose server died after its request arrived and before anything came back."""
    provider.then(silent())
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.prompt(session, "think", id="msg_think")
        await provider.arrived(1)
        await server.kill()
    return session


async def waiting(api: Api, session: str) -> JsonObject:
    """What is to be decided, once the server has found it."""
    await api.post(f"/api/session/{session}/resume")
    await api.wait(session)
    return (await api.get(f"/api/session/{session}/recovery"))["data"]


async def decide(api: Api, session: str, decision: str) -> None:
    await api.post(f"/api/session/{session}/recovery", {"decision": decision})
    await api.wait(session)


async def told(live: Stream, session: str, outcome: str) -> JsonObject:
    """The next status with that outcome that a watching client is told of."""
    while True:
        event = (await live.until("session.status", sessionID=session))[-1]
        if event["data"]["status"].get("outcome") == outcome:
            return event["data"]["status"]


async def failures(api: Api, session: str) -> list[str]:
    history = await api.history(session)
    failed = (e["data"] for e in history if e["type"] == "session.next.step.failed")
    return [data["error"]["message"] for data in failed]


@requirement("S70", "S189")
async def test_what_may_have_been_sent_waits_for_a_person_who_has_it_sent_again(
    asking: ProjectFolders, provider: ScriptedProvider
) -> None:
    session = await killed_with_a_request_out(asking, provider)
    async with restarted(asking) as api:
        async with api.stream("/api/event") as live:
            found = await waiting(api, session)
            status = await told(live, session, "waiting")
        assert (found["waiting"], found["reason"], found["deaths"]) == (True, "unclear", 1)
        assert found["message"] == recovery.WAITING["unclear"]
        said = {"reason": "unclear", "message": found["message"]}
        assert status == {"type": "idle", "outcome": "waiting", **said}
        assert await failures(api, session) == []
        assert len(provider.requests) == 1
        await decide(api, session, "retry")
        messages = await api.messages(session)
        assert messages[-1]["content"][-1]["text"] == "ok"
        assert await failures(api, session) == []
        assert (await api.get(f"/api/session/{session}/recovery"))["data"] == {"waiting": False}
    assert len(provider.requests) == 2


async def test_a_request_that_a_person_gives_up_is_a_failed_step_and_nothing_else(
    asking: ProjectFolders, provider: ScriptedProvider
) -> None:
    session = await killed_with_a_request_out(asking, provider)
    path = f"/api/session/{session}/recovery"
    async with restarted(asking) as api:
        await waiting(api, session)
        await decide(api, session, "abandon")
        assert await failures(api, session) == [recovery.ABANDONED]
        for decision in ("abandon", "retry"):
            late = await api.call("POST", path, {"decision": decision})
            assert (late.status, late.tag) == (409, "ConflictError")
        assert len(provider.requests) == 1
        messages = await api.ask(session, "and now")
        assert messages[-1]["content"][-1]["text"] == "ok"


async def test_what_waits_behind_a_request_that_is_given_up_is_run_to_the_last_prompt(
    asking: ProjectFolders, provider: ScriptedProvider
) -> None:
    """Also if the next prompt fails before anything is sent for it."""
    provider.then(silent())
    async with server_process(asking) as server:
        session = await server.api.create()
        await server.api.prompt(session, "think")
        await provider.arrived(1)
        for said in ("second", "third"):
            await server.api.prompt(session, said, delivery="queue")
        await server.kill()
    async with restarted(asking) as api:
        assert (await waiting(api, session))["waiting"] is True
        await api.post(f"/api/session/{session}/agent", {"agent": "nobody"})
        await decide(api, session, "abandon")
        messages = await api.messages(session)
        assert [m["text"] for m in messages if m["type"] == "user"] == ["think", "second", "third"]
        first, *others = await failures(api, session)
        assert first == recovery.ABANDONED
        assert len(others) == 2
        assert (await api.get("/api/session/active"))["data"] == {}
    assert len(provider.requests) == 1


async def test_a_new_prompt_gives_up_what_may_have_been_sent_and_goes_on(
    asking: ProjectFolders, provider: ScriptedProvider
) -> None:
    session = await killed_with_a_request_out(asking, provider)
    async with restarted(asking) as api:
        # The same prompt once more says nothing new.
        await api.prompt(session, "think", id="msg_think")
        assert (await waiting(api, session))["waiting"] is True
        await api.ask(session, "never mind")
        assert await failures(api, session) == [recovery.ABANDONED]
    assert [r.texts("user") for r in provider.requests[1:]] == [["think", "never mind"]]


async def test_a_request_that_costs_nothing_is_sent_again_by_itself(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    session = await killed_with_a_request_out(folders, provider)
    async with restarted(folders) as api:
        await provider.arrived(2)
        await api.wait(session)
        assert (await api.messages(session))[-1]["content"][-1]["text"] == "ok"
        assert await failures(api, session) == []


async def test_a_policy_can_give_up_without_asking(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, "abandon")
    session = await killed_with_a_request_out(folders, provider)
    async with restarted(folders) as api:
        assert await waiting(api, session) == {"waiting": False}
        assert await failures(api, session) == [recovery.ABANDONED]
    assert len(provider.requests) == 1


async def test_a_run_in_which_server_after_server_dies_is_left_to_a_person(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    deaths = limits.RECOVERY_DEATHS_MAX
    provider.then(*[silent()] * deaths)
    session = "ses_deadly"
    for life in range(deaths):
        async with server_process(folders, f"life {life}") as server:
            await server.api.create(id=session)
            await server.api.prompt(session, "die", id="msg_die")
            await provider.arrived(life + 1)
            await server.kill()
    async with restarted(folders) as api:
        found = await waiting(api, session)
        assert (found["reason"], found["deaths"]) == ("deaths", deaths)
        assert len(provider.requests) == deaths
        await decide(api, session, "retry")
        assert (await api.messages(session))[-1]["content"][-1]["text"] == "ok"
    assert len(provider.requests) == deaths + 1


async def test_nothing_waits_in_a_session_that_never_crashed(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with restarted(folders) as api:
        session = await api.create()
        await api.ask(session, "hello")
        path = f"/api/session/{session}/recovery"
        assert (await api.get(path))["data"] == {"waiting": False}
        refused = await api.call("POST", path, {"decision": "retry"})
        assert (refused.status, refused.tag) == (409, "ConflictError")
        bodies: tuple[JsonValue, ...] = ({}, {"decision": "maybe"}, {"decision": None}, [])
        for body in bodies:
            assert (await api.call("POST", path, body)).status == 400
        missing = await api.call("GET", "/api/session/ses_none/recovery")
        assert (missing.status, missing.tag) == (404, "SessionNotFoundError")


def recover(folders: ProjectFolders, *arguments: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run(
        ("recover", *arguments),
        variables=folders.variables,
        directory=folders.project,
        input="",
        seconds_max=30,
    )


async def test_the_command_line_tells_and_decides_without_a_server(
    asking: ProjectFolders, provider: ScriptedProvider
) -> None:
    session = await killed_with_a_request_out(asking, provider)
    told = await asyncio.to_thread(recover, asking, session)
    assert told.stdout.startswith(f"{session} waits for a decision"), told.stderr
    assert len(provider.requests) == 1
    done = await asyncio.to_thread(recover, asking, session, "--retry")
    assert (done.returncode, done.stdout) == (0, f"{session} sent the request again\n"), done.stderr
    assert len(provider.requests) == 2
    again = await asyncio.to_thread(recover, asking, session, "--abandon")
    assert again.returncode == 1
    assert "does not wait" in again.stderr
    assert "Traceback" not in again.stderr
    assert (await asyncio.to_thread(recover, asking, session)).stdout == (
        f"{session} does not wait for a decision\n"
    )


# ---- a Session that another process runs --------------------------------------------------------


async def test_an_interrupt_reaches_the_process_that_runs_the_session(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("half a sen", hold=asyncio.Event()))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        async with b.api.events(session) as stream:
            await a.api.prompt(session, "talk")
            await stream.until("text.started")
        async with asyncio.timeout(5):
            await b.api.post(f"/api/session/{session}/interrupt")
        assert await failures(b.api, session) == ["Provider turn interrupted"]
        assert session not in (await a.api.get("/api/session/active"))["data"]
        messages = await b.api.ask(session, "go on")
        assert messages[-1]["content"][-1]["text"] == "ok"
    await database_check.check(folders.database)


async def test_waiting_and_reverting_respect_a_run_of_another_process(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("first"), text("second", hold=hold))
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session = await a.api.create()
        first = (await a.api.ask(session, "one"))[0]
        await a.api.prompt(session, "two")
        await provider.arrived(2)
        staged = {"messageID": first["id"]}
        refused = await b.api.call("POST", f"/api/session/{session}/revert/stage", staged)
        assert (refused.status, refused.tag) == (409, "ConflictError")
        async with asyncio.TaskGroup() as group:
            wait = group.create_task(b.api.wait(session))
            refused = await b.api.call("POST", f"/api/session/{session}/revert/stage", staged)
            assert refused.status == 409
            assert not wait.done()
            hold.set()
        assert (await b.api.messages(session))[-1]["content"][-1]["text"] == "second"
        await b.api.post(f"/api/session/{session}/revert/stage", staged)
        await b.api.post(f"/api/session/{session}/revert/commit")
        assert [m["id"] for m in await a.api.messages(session)] == [first["id"]]
    await database_check.check(folders.database)
