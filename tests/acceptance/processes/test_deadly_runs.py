"""A run that brings its server down again and again is stopped, and a person decides.

Only a step that ended by itself is progress. What a start settles of the step before is not.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.core.session import recovery
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support import database_check, polling
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, Reply, Request, ScriptedProvider, calls, text
from tests.support.server_process import ServerProcess, server_process

DEATHS = limits.RECOVERY_DEATHS_MAX
DEADLY = "echo ran >> effects; while true; do sleep 0.1; done"
ASKS_FIRST: JsonObject = {"action": "bash", "resource": "*", "effect": "ask"}
FETCHES: JsonObject = {"action": "webfetch", "resource": "*", "effect": "allow"}
SESSION = "ses_deadly"

Life = Callable[[ServerProcess], Awaitable[None]]


def deadly(request: Request) -> Reply:
    """The same command in every answer, until the user says otherwise."""
    if request.texts("user")[-1] == "leave it":
        return text("left")
    return calls(Call("bash", {"command": DEADLY}))


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    provider.otherwise = deadly
    return make_folders(tmp_path, provider)


def count_effects(folders: ProjectFolders) -> int:
    path = folders.project / "effects"
    return len(path.read_text().splitlines()) if path.exists() else 0


async def until_started(folders: ProjectFolders, count: int) -> None:
    """Wait until the command has been started that many times in all."""
    await polling.until(lambda: count_effects(folders) >= count)


async def live_and_die(
    folders: ProjectFolders, *, lives: int, meanwhile: Life | None = None
) -> None:
    """Servers one after the other, each killed while the command of the Session runs."""
    for life in range(lives):
        async with server_process(folders, f"life {life}") as server:
            if life == 0:
                await server.api.create(id=SESSION)
                await server.api.prompt(SESSION, "die", id="msg_die")
            if meanwhile is not None:
                await meanwhile(server)
            await until_started(folders, life + 1)
            await server.kill()


async def load_recovery(api: Api, session: str = SESSION) -> JsonObject:
    await api.post(f"/api/session/{session}/resume")
    await api.wait(session)
    return (await api.get(f"/api/session/{session}/recovery"))["data"]


async def until_asked(api: Api, kind: str, count: int) -> list[JsonObject]:
    """The pending requests, once there are so many; never more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            found: list[JsonObject] = (await api.get(f"/api/session/{SESSION}/{kind}"))["data"]
            assert len(found) <= count
            if len(found) == count:
                return found


async def allow(server: ServerProcess) -> None:
    """Allow the next command once, in whichever Session it is."""
    async with asyncio.timeout(PATIENCE_SECONDS), server.api.stream("/api/event") as live:
        pending = (await server.api.get(f"/api/session/{SESSION}/permission"))["data"]
        if not pending:
            asked = await live.until("permission.v2.asked")
            pending = [asked[-1]["data"]]
    path = f"/api/session/{pending[0]['sessionID']}/permission/{pending[0]['id']}/reply"
    await server.api.post(path, {"reply": "once"})


@requirement("S70")
@pytest.mark.parametrize("asks", [False, True])
async def test_a_command_that_brings_its_server_down_is_not_run_for_ever(
    folders: ProjectFolders, provider: ScriptedProvider, *, asks: bool
) -> None:
    if asks:
        folders.configure_user(permissions=[ASKS_FIRST])
    await live_and_die(folders, lives=DEATHS, meanwhile=allow if asks else None)
    async with server_process(folders, "last") as server:
        found = await load_recovery(server.api)
        assert (found["waiting"], found["reason"], found["deaths"]) == (True, "deaths", DEATHS)
        assert found["message"] == recovery.WAITING["deaths"]
        assert (count_effects(folders), len(provider.requests)) == (DEATHS, DEATHS)
        states = [
            part["state"]
            for message in await server.api.messages(SESSION)
            if message["type"] == "assistant"
            for part in message["content"]
            if part["type"] == "tool"
        ]
        assert [state["status"] for state in states] == ["error"] * DEATHS
        assert {state["error"]["message"] for state in states} == {recovery.OUTCOME_UNKNOWN}
    assert f"perdure recover {SESSION}" in server.log
    await database_check.check(folders.database)


@pytest.mark.parametrize("decision", ["retry", "abandon", "prompt"])
async def test_after_the_last_death_a_person_says_how_it_goes_on(
    folders: ProjectFolders, provider: ScriptedProvider, decision: str
) -> None:
    await live_and_die(folders, lives=DEATHS)
    path = f"/api/session/{SESSION}/recovery"
    async with server_process(folders, "last") as server:
        api = server.api
        assert (await load_recovery(api))["reason"] == "deaths"
        if decision == "prompt":
            messages = await api.ask(SESSION, "leave it")
        else:
            provider.then(text("once more"))
            await api.post(path, {"decision": decision})
            await api.wait(SESSION)
            messages = await api.messages(SESSION)
        assert (await api.get(path))["data"] == {"waiting": False}
    said = {"retry": "once more", "prompt": "left"}
    if decision == "abandon":
        assert len(provider.requests) == DEATHS
        assert messages[-1]["error"]["message"] == recovery.CUT_OFF
    else:
        assert messages[-1]["content"][-1]["text"] == said[decision]
    assert count_effects(folders) == DEATHS


async def test_a_decision_to_retry_counts_the_deaths_from_the_start(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    await live_and_die(folders, lives=DEATHS)

    async with server_process(folders, "decides") as server:
        assert (await load_recovery(server.api))["waiting"]
        await server.api.post(f"/api/session/{SESSION}/recovery", {"decision": "retry"})
        await until_started(folders, DEATHS + 1)
        await server.kill()
    async with server_process(folders, "goes on") as server:
        await until_started(folders, DEATHS + 2)
        assert (await server.api.get(f"/api/session/{SESSION}/recovery"))["data"] == {
            "waiting": False
        }
        await server.kill()
    assert count_effects(folders) == DEATHS + 2


@requirement("S70")
async def test_a_step_that_ended_by_itself_makes_the_deaths_before_it_not_count(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    def in_turn(request: Request) -> Reply:
        if len(provider.requests) % 2:
            return calls(Call("bash", {"command": DEADLY}))
        return calls(Call("bash", {"command": "echo fine"}))

    provider.otherwise = in_turn
    await live_and_die(folders, lives=DEATHS + 1)
    async with server_process(folders, "last") as server:
        await until_started(folders, DEATHS + 2)
        recovering = await server.api.get(f"/api/session/{SESSION}/recovery")
        assert recovering["data"] == {"waiting": False}
        await server.kill()
    assert count_effects(folders) == DEATHS + 2


@requirement("S70")
async def test_a_subagent_that_brings_its_server_down_is_not_begun_for_ever(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """The parent delegates anew each time, to another child; its own deaths stop that."""

    def delegating(request: Request) -> Reply:
        if request.texts("user")[0] != "die":
            return calls(Call("bash", {"command": DEADLY}))
        task = {"subagent_type": "general", "description": "work", "prompt": "work"}
        return calls(Call("task", task))

    provider.otherwise = delegating
    # Each life has one child more, until the first ones and their parent have had their deaths.
    for life, children in enumerate([*range(1, DEATHS + 1), *range(DEATHS - 1, 0, -1)]):
        before = count_effects(folders)
        async with server_process(folders, f"life {life}") as server:
            if life == 0:
                await server.api.create(id=SESSION)
                await server.api.prompt(SESSION, "die", id="msg_die")
            await until_started(folders, before + children)
            await server.kill()
    effects, requests = count_effects(folders), len(provider.requests)
    async with server_process(folders, "last") as server:
        made = (await server.api.get(f"/api/session/{SESSION}/children"))["data"]
        for session in (SESSION, *(child["id"] for child in made)):
            found = await load_recovery(server.api, session)
            assert (found.get("reason"), found.get("deaths")) == ("deaths", DEATHS), session
    assert len(made) == DEATHS
    assert (count_effects(folders), len(provider.requests)) == (effects, requests)


@requirement("S70")
async def test_a_call_that_is_run_again_is_not_excused_by_one_that_waits_beside_it(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """A run that only waits for a person does not bring its process down; this one does more."""
    folders.configure_user(
        permissions=[ASKS_FIRST, FETCHES],
        experimental={"webfetch": {"allowed_hosts": ["127.0.0.1"]}},
    )
    fetched = 0

    async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal fetched
        fetched += 1
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never_answers, "127.0.0.1", 0) as page:
        port = page.sockets[0].getsockname()[1]
        fetch = Call("webfetch", {"url": f"http://127.0.0.1:{port}/", "format": "text"}, "call_f")
        provider.then(calls(fetch, Call("bash", {"command": "true"}, "call_b")))
        for life in range(DEATHS):
            async with server_process(folders, f"life {life}") as server:
                if life == 0:
                    await server.api.create(id=SESSION)
                    await server.api.prompt(SESSION, "die", id="msg_die")
                await polling.until(lambda life=life: fetched > life)
                await server.kill()
        async with server_process(folders, "last") as server:
            found = await load_recovery(server.api)
            assert (found.get("reason"), found.get("deaths")) == ("deaths", DEATHS)
            assert (await server.api.get(f"/api/session/{SESSION}/permission"))["data"] == []
    assert fetched == DEATHS


@requirement("S70")
async def test_what_a_person_is_asked_outlives_more_deaths_than_a_run_may_have(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """Each command that is allowed is cut; what is still asked stays, and its answer is used."""
    folders.configure_user(permissions=[ASKS_FIRST])
    option = {"label": "yes", "description": "go on"}
    question = {"questions": [{"question": "sure?", "header": "sure", "options": [option]}]}
    commands = [Call("bash", {"command": DEADLY}, f"call_{n}") for n in range(DEATHS + 1)]
    provider.then(calls(*commands, Call("question", question, "call_q")), text("I see"))
    permissions = f"/api/session/{SESSION}/permission"
    for life in range(DEATHS + 1):
        async with server_process(folders, f"life {life}") as server:
            if life == 0:
                await server.api.create(id=SESSION)
                await server.api.prompt(SESSION, "die", id="msg_die")
            found = await until_asked(server.api, "permission", DEATHS + 1 - life)
            await until_asked(server.api, "question", 1)
            await server.api.post(f"{permissions}/{found[0]['id']}/reply", {"reply": "once"})
            await until_started(folders, life + 1)
            await server.kill()
    async with server_process(folders, "last") as server:
        (asked,) = await until_asked(server.api, "question", 1)
        path = f"/api/session/{SESSION}/question/{asked['id']}/reply"
        await server.api.post(path, {"answers": [["yes"]]})
        await server.api.wait(SESSION)
        recovering = await server.api.get(f"/api/session/{SESSION}/recovery")
        assert recovering["data"] == {"waiting": False}
        messages = await server.api.messages(SESSION)
    states = [part["state"]["status"] for part in messages[1]["content"]]
    assert states == [*["error"] * (DEATHS + 1), "completed"]
    assert messages[-1]["content"][-1]["text"] == "I see"
    assert count_effects(folders) == DEATHS + 1
