"""Embedded Perdure: what it adds to the client, and that it leaves nothing behind."""

import asyncio
import os
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from perdure.client import ClientError, WireClient
from perdure.client.client import Client
from perdure.embedded.host import Host, open_host, open_wire_host
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.codec import Record
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.event import AgentSwitched
from perdure.schema.session.message import AssistantMessage, TextPart, ToolPart, UserMessage
from perdure.schema.session.tool import CompletedState
from perdure.testing import ScriptedModel, text, tool_call
from perdure.tools.api.tool import Tool, ToolCallContext
from tests.contract.client.hosts import PATIENCE_SECONDS, project
from tests.requirements import requirement

DEMO = ModelRef(provider_id="demo", id="demo")
MINE = ModelRef(provider_id="mine", id="first")


class Greeting(Record):
    name: str


async def greet(input: Greeting, context: ToolCallContext) -> Greeting:
    return input


GREET = Tool(name="greet", description="greets", input=Greeting, output=Greeting, execute=greet)


async def asked_for_permission(perdure: Host) -> PermissionRequest:
    """What a Session waits for."""
    session = await perdure.sessions.create(model=DEMO)
    async with aclosing(perdure.events.subscribe()) as events, asyncio.timeout(PATIENCE_SECONDS):
        await anext(events)
        await perdure.sessions.prompt(session.id, text="show me a permission request")
        async for event in events:
            if isinstance(event.data, PermissionRequest):
                return event.data
    raise AssertionError("no permission was asked for")


async def last_text(perdure: Host, session_id: SessionID) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await perdure.sessions.wait(session_id)
    (message,) = (await perdure.sessions.messages(session_id, limit=1)).items
    assert isinstance(message, AssistantMessage)
    part = message.content[-1]
    return part.text if isinstance(part, TextPart) else ""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@requirement("S22", "S110", "S127")
async def test_closing_leaves_no_task_and_what_was_kept_can_be_opened_again(
    tmp_path: Path,
) -> None:
    data_dir, directory = str(tmp_path / "data"), str(project(tmp_path))
    before = asyncio.all_tasks()
    async with open_host(directory, data_dir=data_dir) as perdure:
        session = await perdure.sessions.create(model=DEMO)
        await perdure.sessions.prompt(session.id, text="run `sleep 60`")
        stream = perdure.sessions.events(session.id)
        await anext(stream)
    assert asyncio.all_tasks() == before
    await stream.aclose()
    async with open_host(directory, data_dir=data_dir) as perdure:
        assert (await perdure.sessions.get(session.id)).id == session.id


@requirement("S110")
@pytest.mark.parametrize("ending", ["done", "error", "cancelled"])
async def test_closing_leaves_no_task_and_no_open_file(tmp_path: Path, ending: str) -> None:
    async def used() -> None:
        async with open_host(str(project(tmp_path)), data_dir=str(tmp_path / "data")) as perdure:
            session = await perdure.sessions.create(model=DEMO)
            await perdure.sessions.prompt(session.id, text="run `sleep 60`")
            await anext(perdure.sessions.events(session.id))
            if ending == "error":
                raise ZeroDivisionError
            if ending == "cancelled":
                raise asyncio.CancelledError

    async def ended() -> None:
        with suppress(ZeroDivisionError, asyncio.CancelledError):
            await used()

    # What a process opens once and keeps (threads, modules) is open after the first time.
    await ended()
    tasks, files = asyncio.all_tasks(), descriptors()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await ended()
    assert asyncio.all_tasks() == tasks
    assert descriptors() == files


@requirement("S110", "S130")
async def test_closing_tells_live_readers_that_the_instance_is_gone(tmp_path: Path) -> None:
    seen: list[str] = []
    greeted = asyncio.Event()

    async def listen(perdure: Host) -> None:
        async for event in perdure.events.subscribe():
            seen.append(event.type)
            greeted.set()

    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        asyncio.TaskGroup() as group,
        open_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure,
    ):
        group.create_task(listen(perdure))
        await greeted.wait()
    assert (seen[0], seen[-1]) == ("server.connected", "server.instance.disposed")


async def test_an_error_of_the_body_comes_out_as_it_was_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_host(str(tmp_path), data_dir=str(tmp_path / "data")):
            raise ZeroDivisionError


async def test_cancelling_the_body_closes_and_stays_a_cancellation(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    started = asyncio.Event()

    async def listen() -> None:
        async with open_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
            async for _ in perdure.events.subscribe():
                started.set()

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        listening = group.create_task(listen())
        await started.wait()
        listening.cancel()
    assert listening.cancelled()
    assert asyncio.all_tasks() == before


@requirement("S22", "S111", "S126", "S128")
async def test_a_tool_is_offered_exactly_as_long_as_its_scope(tmp_path: Path) -> None:
    async with open_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
        assert isinstance(perdure, Client)
        with perdure.tools.register(GREET):
            assert "greet" in perdure.tools.names()
        assert "greet" not in perdure.tools.names()


@requirement("S111")
async def test_plain_values_and_tools_stand_on_one_object_as_well(tmp_path: Path) -> None:
    async with open_wire_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
        assert isinstance(perdure, WireClient)
        with perdure.tools.register(GREET):
            assert "greet" in perdure.tools.names()
        assert (await perdure.sessions.create(id="ses_plain"))["id"] == "ses_plain"


async def test_an_unknown_session_is_a_failure_of_its_kind(tmp_path: Path) -> None:
    async with open_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
        with pytest.raises(SessionNotFoundError) as caught:
            await perdure.sessions.get(SessionID("ses_missing"))
    assert caught.value.session_id == "ses_missing"


async def test_a_permission_can_be_given_from_the_program(tmp_path: Path) -> None:
    directory = str(project(tmp_path))
    async with open_host(directory, data_dir=str(tmp_path / "data")) as perdure:
        asked = await asked_for_permission(perdure)
        await perdure.sessions.permissions.reply(asked.session_id, asked.id, "once")
        assert "You allowed it" in await last_text(perdure, asked.session_id)


async def test_a_host_without_a_person_refuses_instead_of_waiting(tmp_path: Path) -> None:
    directory = str(project(tmp_path))
    async with open_host(directory, data_dir=str(tmp_path / "data"), headless="deny") as perdure:
        session = await perdure.sessions.create(model=DEMO)
        await perdure.sessions.prompt(session.id, text="show me a permission request")
        assert "approval" in await last_text(perdure, session.id)


@requirement("S147")
async def test_two_hosts_on_one_data_directory_run_a_prompt_once(tmp_path: Path) -> None:
    directory, data_dir = str(project(tmp_path)), str(tmp_path / "data")
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_host(directory, data_dir=data_dir) as one,
        open_host(directory, data_dir=data_dir) as other,
    ):
        session = await one.sessions.create(model=DEMO)
        await one.sessions.prompt(session.id, text="hello")
        await other.sessions.resume(session.id)
        await one.sessions.wait(session.id)
        await other.sessions.wait(session.id)
        page = await other.sessions.messages(session.id, order="asc")
        assert [type(message) for message in page.items] == [UserMessage, AssistantMessage]


@requirement("S147")
async def test_a_slow_reader_holds_the_stream_back_and_loses_nothing(tmp_path: Path) -> None:
    async with open_host(str(tmp_path), data_dir=str(tmp_path / "data")) as perdure:
        session = await perdure.sessions.create()
        agents = ["plan", "build"] * 200
        async with (
            aclosing(perdure.sessions.events(session.id)) as events,
            asyncio.timeout(PATIENCE_SECONDS),
        ):
            for agent in agents:
                await perdure.sessions.switch_agent(session.id, agent)
            seen = [(await anext(events)).data for _ in agents]
    assert [fact.agent for fact in seen if isinstance(fact, AgentSwitched)] == agents


async def test_a_call_that_waits_when_the_host_closes_fails_as_a_lost_transport(
    tmp_path: Path,
) -> None:
    failures: list[str] = []

    async def wait(perdure: Host, session_id: SessionID) -> None:
        try:
            await perdure.sessions.wait(session_id)
        except ClientError as error:
            failures.append(error.reason)

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        directory = str(project(tmp_path))
        async with open_host(directory, data_dir=str(tmp_path / "data")) as perdure:
            asked = await asked_for_permission(perdure)
            group.create_task(wait(perdure, asked.session_id))
            await perdure.health.get()
    assert failures == ["transport"]


async def test_a_model_of_the_embedding_program_answers(tmp_path: Path) -> None:
    model = ScriptedModel().turn(text("Hello from my own model."))
    async with open_host(
        str(tmp_path), data_dir=str(tmp_path / "data"), models={"mine/first": model}
    ) as perdure:
        session = await perdure.sessions.create(model=MINE)
        await perdure.sessions.prompt(session.id, text="hello")
        assert await last_text(perdure, session.id) == "Hello from my own model."


def test_a_model_without_a_provider_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="provider/model"):
        open_host(str(tmp_path), models={"first": ScriptedModel()})


async def test_a_tool_of_the_embedding_program_is_called_by_the_model(tmp_path: Path) -> None:
    model = ScriptedModel().turn(tool_call("greet", {"name": "Ada"})).turn(text("Done."))
    async with open_host(
        str(tmp_path), data_dir=str(tmp_path / "data"), models={"mine/first": model}
    ) as perdure:
        with perdure.tools.register(GREET):
            session = await perdure.sessions.create(model=MINE)
            await perdure.sessions.prompt(session.id, text="greet Ada")
            await perdure.sessions.wait(session.id)
            page = await perdure.sessions.messages(session.id, order="asc")
    answer = page.items[1]
    assert isinstance(answer, AssistantMessage)
    part = answer.content[0]
    assert isinstance(part, ToolPart)
    assert isinstance(part.state, CompletedState)
    assert part.state.structured == {"name": "Ada"}
