"""Two servers on one data directory are one runtime: each prompt runs once, through either."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest

from perdure.core.session import inbox, recovery
from perdure.host.clock import SystemClock
from perdure.host.ids import SystemIds
from perdure.runtime.session.admission import PromptAdmission
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.prompt import PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.store.database.sqlite import SqliteDatabase
from perdure.store.log.event_store import NO_EVENTS, EventStore
from tests.requirements import requirement
from tests.support import database_check
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import (
    Call,
    Reply,
    Request,
    ScriptedProvider,
    calls,
    text,
)
from tests.support.server_process import ServerProcess, server_process

SEEN_SECONDS_MAX = 2.0
"""How long another process's commit may take to reach a reader."""


@pytest.fixture
async def pair(folders: ProjectFolders) -> AsyncGenerator[tuple[ServerProcess, ServerProcess]]:
    async with both(folders) as servers:
        yield servers


@asynccontextmanager
async def both(folders: ProjectFolders) -> AsyncGenerator[tuple[ServerProcess, ServerProcess]]:
    """Two servers, and a sound directory without a word of trouble when they are done."""
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        yield a, b
    for server in (a, b):
        assert "Traceback" not in server.log, server.log
        assert "locked" not in server.log, server.log
    await database_check.check(folders.database)


def echo(request: Request) -> Reply:
    return text("heard ", request.texts("user")[-1])


async def test_two_servers_may_start_at_once_on_an_empty_directory(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with asyncio.TaskGroup() as group:
        starting = [group.create_task(_hello(folders, f"s{number}")) for number in range(3)]
    assert len({task.result() for task in starting}) == 3
    await database_check.check(folders.database)


@requirement("S147")
async def test_what_one_server_runs_is_followed_on_the_other(
    pair: tuple[ServerProcess, ServerProcess],
) -> None:
    a, b = pair
    session = await a.api.create()
    async with b.api.events(session) as stream:
        await a.api.prompt(session, "hello")
        async with asyncio.timeout(SEEN_SECONDS_MAX):
            told = await stream.until("step.ended")
    assert told == await a.api.history(session)
    assert await a.api.messages(session) == await b.api.messages(session)


@requirement("S147")
async def test_prompts_to_either_server_join_one_conversation(
    pair: tuple[ServerProcess, ServerProcess], provider: ScriptedProvider
) -> None:
    provider.otherwise = echo
    session = await pair[0].api.create()
    async with pair[1].api.events(session) as stream:
        for number in range(8):
            await pair[number % 2].api.prompt(session, f"part {number}")
            await stream.until("step.ended")
    assert len(provider.requests) == 8
    assert provider.requests[-1].texts("user") == [f"part {number}" for number in range(8)]


@requirement("S69", "S147")
async def test_prompts_sent_to_both_at_once_are_each_answered_once(
    pair: tuple[ServerProcess, ServerProcess], provider: ScriptedProvider
) -> None:
    provider.otherwise = echo
    session = await pair[0].api.create()
    markers = [f"<{number}>" for number in range(24)]
    async with pair[1].api.events(session) as stream:
        await asyncio.gather(
            *(
                pair[number % 2].api.prompt(session, marker, delivery="queue")
                for number, marker in enumerate(markers)
            )
        )
        for _ in markers:
            await stream.until("step.ended")
    assert [provider.requests_with(marker) for marker in markers] == [1] * len(markers)
    assert len(provider.requests) == len(markers)


@requirement("S147")
async def test_many_sessions_are_shared_without_repeating_a_turn(
    pair: tuple[ServerProcess, ServerProcess], provider: ScriptedProvider
) -> None:
    provider.otherwise = echo
    sessions = [await pair[number % 2].api.create() for number in range(12)]

    async def converse(index: int, session: str) -> None:
        async with pair[index % 2].api.events(session) as stream:
            for turn in range(3):
                server = pair[(index + turn) % 2]
                await server.api.prompt(session, f"<{session} {turn}>")
                await stream.until("step.ended")

    await asyncio.gather(*(converse(i, session) for i, session in enumerate(sessions)))
    for session in sessions:
        assert [provider.requests_with(f"<{session} {turn}>") for turn in range(3)] == [1, 1, 1]


@requirement("S74", "S147")
async def test_one_prompt_retried_at_both_servers_runs_once(
    pair: tuple[ServerProcess, ServerProcess], provider: ScriptedProvider
) -> None:
    session = await pair[0].api.create()
    async with pair[1].api.events(session) as stream:
        receipts = await asyncio.gather(
            *(pair[n % 2].api.prompt(session, "once", id="msg_once") for n in range(10))
        )
        await stream.until("step.ended")
    assert {receipt["admittedSeq"] for receipt in receipts} == {1}
    assert provider.requests_with("once") == 1


@requirement("S70", "S147")
async def test_what_a_killed_server_left_pending_is_run_by_the_other(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("never finished", hold=asyncio.Event()))
    async with both(folders) as (a, b):
        session = await a.api.create()
        async with b.api.events(session) as stream:
            await a.api.prompt(session, "first")
            await stream.until("text.started")
            await a.api.prompt(session, "second", delivery="queue")
            await a.kill()
            # The first is asked again, and then the second runs.
            await stream.until("step.ended")
            await stream.until("step.ended")
        assert provider.requests_with("second") == 1
        assert [m["type"] for m in await b.api.messages(session)][-2:] == ["user", "assistant"]


@requirement("S70", "S147")
async def test_what_a_stopped_server_left_pending_is_run_by_the_other(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("never finished", hold=asyncio.Event()))
    async with both(folders) as (a, b):
        session = await a.api.create()
        async with b.api.events(session) as stream:
            await a.api.prompt(session, "first")
            await provider.arrived(1)
            await a.api.prompt(session, "second", delivery="queue")
            await a.stop()
            # The first is asked again, and then the second runs.
            await stream.until("step.ended")
            await stream.until("step.ended")
        assert provider.requests_with("second") == 1


@requirement("S70", "S147")
async def test_of_several_survivors_one_takes_over(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("never finished", hold=asyncio.Event()))
    async with both(folders) as (a, b), server_process(folders, "c"):
        session = await a.api.create()
        async with b.api.events(session) as stream:
            await a.api.prompt(session, "first")
            await stream.until("text.started")
            await a.api.prompt(session, "second", delivery="queue")
            await a.kill()
            # The first is asked again, and then the second runs.
            await stream.until("step.ended")
            await stream.until("step.ended")
        assert provider.requests_with("second") == 1


@requirement("S70", "S147")
async def test_what_a_process_admitted_that_nobody_ever_saw_is_run(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with both(folders) as (a, b):
        session = await a.api.create()
        async with b.api.events(session) as stream:
            await _admit_and_die(folders, SessionID(session), "anybody there?")
            await stream.until("step.ended")
        assert provider.requests_with("anybody there?") == 1


@requirement("S189", "S147")
async def test_a_prompt_to_the_survivor_settles_what_the_killed_one_was_doing(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    waiting = "while [ ! -e released ]; do sleep 0.1; done"
    provider.then(calls(Call("bash", {"command": waiting})))
    async with both(folders) as (a, b):
        session = await a.api.create()
        async with b.api.events(session) as stream:
            await a.api.prompt(session, "run")
            await stream.until("tool.called")
            await a.kill()
            (folders.project / "released").touch()
            await b.api.prompt(session, "what happened")
            told = await stream.until("step.ended")
        failed = [e for e in told if e["type"] == "session.next.tool.failed"]
        assert [e["data"]["error"]["message"] for e in failed] == [recovery.OUTCOME_UNKNOWN]


class Unseen:
    """A process that is gone before anybody has looked: ports.Processes."""

    me = "prc_unseen"

    def alive(self, process: str) -> bool:
        return True

    def others(self) -> frozenset[str]:
        return frozenset()

    def beat(self) -> None:
        pass

    def silent(self) -> Mapping[str, str]:
        return {}


async def _admit_and_die(folders: ProjectFolders, session_id: SessionID, said: str) -> None:
    clock = SystemClock()
    async with SqliteDatabase(str(folders.database)) as database:
        asked = AdmittedPrompt(
            admitted_seq=NO_EVENTS,
            id=SystemIds(clock).message(),
            session_id=session_id,
            prompt=inbox.admit(PromptInput(text=said)),
            delivery="steer",
            time_created=clock.now_millis(),
        )
        admissions = PromptAdmission(EventStore(database, SystemIds(clock), Unseen()))
        location = LocationRef(directory=str(folders.project))
        await admissions.admit(location, asked, supplied=False, resume=True)


async def _hello(folders: ProjectFolders, name: str) -> str:
    async with server_process(folders, name) as server:
        session = await server.api.create()
        await server.api.ask(session, f"hello from {name}")
        return session
