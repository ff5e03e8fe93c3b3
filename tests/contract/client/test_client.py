"""The client's promises, each over a real socket and in memory."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar

import pytest

from perdure.client import CallOptions, WireClient, WireError
from perdure.client.generated.types import AdmittedPrompt
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.client.hosts import (
    DEMO,
    PATIENCE_SECONDS,
    OpenClient,
    in_memory,
    over_network,
    plain,
)
from tests.requirements import requirement

T = TypeVar("T")


@pytest.fixture(params=[over_network, in_memory], ids=["network", "memory"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[WireClient]:
    opened: OpenClient = request.param
    async with opened(tmp_path) as client:
        yield client


async def prompted(client: WireClient, text: str) -> str:
    """A Session in which the demo model has done `text`."""
    session = await client.sessions.create(model=DEMO)
    await client.sessions.prompt(session["id"], text=text)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await client.sessions.wait(session["id"])
    return session["id"]


async def declared(call: Awaitable[object]) -> WireError:
    with pytest.raises(WireError) as caught:
        await call
    return caught.value


@requirement("S108", "S145")
async def test_a_created_session_is_a_plain_value_and_can_be_read_again(
    client: WireClient, tmp_path: Path
) -> None:
    made = await client.sessions.create(id="ses_mine", agent="build", model=DEMO)
    assert type(made) is dict
    assert made["id"] == "ses_mine"
    assert made["location"]["directory"] == str(tmp_path / "project")
    assert await client.sessions.get("ses_mine") == made
    assert await client.sessions.create(id="ses_mine", agent="other") == made


@requirement("S177", "S179")
async def test_permissions_are_asked_for_listed_answered_and_forgotten(
    client: WireClient, tmp_path: Path
) -> None:
    session_id = (await client.sessions.create())["id"]
    permissions = client.sessions.permissions
    outside = {"action": "external_directory", "resources": ["/etc/*"]}
    made = await permissions.create(
        session_id,
        action="external_directory",
        resources=["/etc/*"],
        save=["/etc/*"],
        id="per_mine",
    )
    assert made == {"id": "per_mine", "effect": "ask"}
    request = {**made, **outside, "sessionID": session_id, "save": ["/etc/*"]}
    del request["effect"]
    assert await permissions.list(session_id) == (request,)
    assert await permissions.get(session_id, "per_mine") == request
    assert await client.permissions.requests(directory=str(tmp_path / "project")) == (request,)
    assert await client.permissions.requests(directory=str(tmp_path)) == ()
    await permissions.reply(session_id, "per_mine", "always")
    again = await declared(permissions.reply(session_id, "per_mine", "reject", message="late"))
    assert (again.status, again.tag) == (404, "PermissionNotFoundError")
    (saved,) = await client.permissions.saved()
    assert (saved["action"], saved["resource"]) == ("external_directory", "/etc/*")
    assert await client.permissions.saved(saved["projectID"]) == (saved,)
    await client.permissions.remove_saved(saved["id"])
    await client.permissions.remove_saved("../never/there")
    assert await client.permissions.saved() == ()


@requirement("S143")
async def test_a_session_may_be_created_in_another_location(
    client: WireClient, tmp_path: Path
) -> None:
    made = await client.sessions.create(location={"directory": str(tmp_path)})
    assert made["location"]["directory"] == str(tmp_path)


@requirement("S108")
async def test_a_prompt_runs_the_model_and_its_tools_and_leaves_messages(
    client: WireClient,
) -> None:
    session_id = await prompted(client, "list the files here")
    page = await client.sessions.messages(session_id, order="asc")
    assert [message["type"] for message in page.items] == ["user", "assistant", "assistant"]
    assert "one.txt" in plain(page.items[-1])["content"][-1]["text"]
    assert await client.sessions.message(session_id, page.items[0]["id"]) == page.items[0]
    context = await client.sessions.context(session_id)
    assert [message for message in context if message["type"] != "system"] == [*page.items]


async def test_a_prompt_sent_again_under_its_id_gives_the_same_receipt(
    client: WireClient,
) -> None:
    session = await client.sessions.create(model=DEMO)

    async def send() -> AdmittedPrompt:
        return await client.sessions.prompt(
            session["id"],
            prompt={"text": "hello"},
            id="msg_again",
            delivery="queue",
            resume=False,
        )

    first = await send()
    assert await send() == first
    assert await client.sessions.active() == {}
    conflict = await declared(client.sessions.prompt(session["id"], text="no", id="msg_again"))
    assert (conflict.tag, conflict.status) == ("ConflictError", 409)
    assert conflict.value["resource"] == "msg_again"


async def test_a_prompt_must_be_given_once(client: WireClient) -> None:
    with pytest.raises(TypeError):
        await client.sessions.prompt("ses_x")
    with pytest.raises(TypeError):
        await client.sessions.prompt("ses_x", text="a", prompt={"text": "b"})


@requirement("S117", "S138", "S139")
async def test_a_declared_failure_is_a_tagged_value(client: WireClient) -> None:
    missing = await declared(client.sessions.get("ses_none"))
    assert missing.tag == "SessionNotFoundError"
    assert missing.value == {
        "_tag": "SessionNotFoundError",
        "sessionID": "ses_none",
        "message": "Session not found: ses_none",
    }
    assert (await declared(client.sessions.interrupt("ses_none"))).tag == "SessionNotFoundError"
    session = await client.sessions.create()
    lost = await declared(client.sessions.message(session["id"], "msg_none"))
    assert lost.tag == "MessageNotFoundError"
    refused = await declared(client.sessions.create(location={"directory": "/no/such/place"}))
    assert (refused.tag, refused.value["field"]) == ("InvalidRequestError", "location")


async def test_an_id_cannot_lead_to_another_path(client: WireClient) -> None:
    for hostile in ("../agent", "..", "a/b?c#d", "%2e%2e", "ses_\u00e9 \n"):
        failure = await declared(client.sessions.get(hostile))
        assert failure.tag in {"SessionNotFoundError", "InvalidRequestError"}, hostile


@requirement("S135", "S136")
async def test_listing_goes_page_by_page_in_both_directions(client: WireClient) -> None:
    made = [(await client.sessions.create())["id"] for _ in range(5)]
    first = await client.sessions.list(limit=2)
    assert first.next is not None
    assert first.previous is None
    second = await client.sessions.list(cursor=first.next)
    assert second.next is not None
    third = await client.sessions.list(cursor=second.next)
    listed = [item["id"] for page in (first, second, third) for item in page.items]
    assert sorted(listed) == sorted(made)
    assert third.next is None
    assert third.previous is not None
    assert (await client.sessions.list(cursor=third.previous)).items == second.items
    bad = await declared(client.sessions.list(cursor="forged"))
    assert bad.tag == "InvalidCursorError"
    with_order = await declared(client.sessions.list(cursor=first.next, order="asc"))
    assert with_order.tag == "InvalidCursorError"


@requirement("S137")
async def test_messages_are_paged_and_a_cursor_of_another_session_is_refused(
    client: WireClient,
) -> None:
    session_id = await prompted(client, "list the files here")
    first = await client.sessions.messages(session_id, limit=1, order="asc")
    assert first.next is not None
    second = await client.sessions.messages(session_id, cursor=first.next)
    assert first.items[0]["type"] == "user"
    assert second.items[0]["type"] == "assistant"
    other = await client.sessions.create()
    bad = await declared(client.sessions.messages(other["id"], cursor=first.next))
    assert bad.tag == "InvalidCursorError"


@requirement("S129", "S122")
async def test_durable_events_replay_after_a_sequence_and_match_the_history(
    client: WireClient,
) -> None:
    session_id = await prompted(client, "hello")
    history = await client.sessions.history(session_id)
    assert not history.has_more
    replayed = await taken(client.sessions.events(session_id), len(history.items))
    assert replayed == [*history.items]
    middle = replayed[2]["durable"]["seq"]
    resumed = await taken(client.sessions.events(session_id, after=middle), len(replayed) - 3)
    assert resumed == replayed[3:]
    short = await client.sessions.history(session_id, limit=2)
    assert short.has_more
    rest = await client.sessions.history(session_id, after=short.items[-1]["durable"]["seq"])
    # More may have happened meanwhile.
    assert [*short.items, *rest.items][: len(replayed)] == replayed


@requirement("S129")
async def test_durable_events_follow_what_happens_after_the_replay(client: WireClient) -> None:
    session = await client.sessions.create(model=DEMO)
    await client.sessions.switch_agent(session["id"], "plan")
    async with (
        aclosing(client.sessions.events(session["id"])) as events,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        assert (await anext(events))["type"] == "session.next.agent.switched"
        await client.sessions.prompt(session["id"], text="hello")
        assert (await anext(events))["type"] == "session.next.prompt.admitted"


@requirement("S120", "S121", "S134")
async def test_a_stream_does_nothing_before_it_is_iterated_and_fails_then(
    client: WireClient,
) -> None:
    stream = client.sessions.events("ses_none")
    await client.sessions.create(id="ses_later")
    later = client.sessions.events("ses_later")
    failure = await declared(anext(stream))
    assert failure.tag == "SessionNotFoundError"
    await client.sessions.switch_agent("ses_later", "plan")
    assert [event["type"] for event in await taken(later, 1)] == ["session.next.agent.switched"]


@requirement("S120")
async def test_leaving_a_stream_early_closes_its_request(client: WireClient) -> None:
    session_id = await prompted(client, "hello")
    for _ in range(50):
        async with aclosing(client.sessions.events(session_id)) as events:
            await anext(events)
        async with aclosing(client.events.subscribe()) as live:
            await anext(live)
    assert (await client.health.get()) == {"healthy": True}


@requirement("S120", "S124")
async def test_cancelling_the_reader_of_a_stream_ends_it(client: WireClient) -> None:
    session_id = await prompted(client, "hello")
    for stream in (client.sessions.events(session_id), client.events.subscribe()):
        started = asyncio.Event()
        async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
            reading = group.create_task(read_on(stream, started))
            await started.wait()
            reading.cancel()
        assert reading.cancelled()
        assert await anext(stream, None) is None
    assert (await client.sessions.get(session_id))["id"] == session_id


@requirement("S130", "S131")
async def test_the_live_stream_greets_and_carries_fragments_of_every_session(
    client: WireClient,
) -> None:
    seen: list[JsonValue] = []
    one = await client.sessions.create(model=DEMO)
    two = await client.sessions.create(model=DEMO)
    async with aclosing(client.events.subscribe()) as events, asyncio.timeout(PATIENCE_SECONDS):
        assert (await anext(events))["type"] == "server.connected"
        await client.sessions.prompt(one["id"], text="hello")
        await client.sessions.prompt(two["id"], text="hello")
        while sum(is_idle(event) for event in seen) < 2:
            seen.append(await anext(events))
    deltas = [event for event in seen if event["type"] == "session.next.text.delta"]
    assert {event["data"]["sessionID"] for event in deltas} == {one["id"], two["id"]}


async def test_interrupting_an_idle_session_is_harmless(client: WireClient) -> None:
    session = await client.sessions.create()
    await client.sessions.interrupt(session["id"])
    await client.sessions.interrupt(session["id"])
    await client.sessions.wait(session["id"])


@requirement("S142")
async def test_a_running_session_is_active_until_it_is_interrupted(client: WireClient) -> None:
    session = await client.sessions.create(model=DEMO)
    async with aclosing(client.sessions.events(session["id"])) as events:
        await client.sessions.prompt(session["id"], text="run `sleep 60`")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await anext(events))["type"] != "session.next.tool.called":
                pass
    assert await client.sessions.active() == {session["id"]: {"type": "running"}}
    await client.sessions.interrupt(session["id"])
    assert await client.sessions.active() == {}


async def test_agent_and_model_of_a_session_can_be_switched(client: WireClient) -> None:
    session = await client.sessions.create()
    await client.sessions.switch_agent(session["id"], "plan")
    await client.sessions.switch_model(session["id"], DEMO)
    switched = plain(await client.sessions.get(session["id"]))
    assert switched["agent"] == "plan"
    assert switched["model"]["providerID"] == "demo"


async def test_the_catalog_of_a_location_can_be_read(client: WireClient, tmp_path: Path) -> None:
    here = await client.locations.get()
    assert here["directory"] == str(tmp_path / "project")
    assert (await client.locations.get(directory=str(tmp_path)))["directory"] == str(tmp_path)
    assert "build" in {agent["id"] for agent in await client.agents.list()}
    assert "demo" in {model["providerID"] for model in await client.models.list()}
    assert "demo" in {provider["id"] for provider in await client.providers.list()}
    assert (await client.providers.get("demo"))["id"] == "demo"
    assert [skill["name"] for skill in await client.skills.list()] == ["configure-perdure"]
    assert await client.references.list() == ()
    assert (await declared(client.providers.get("none"))).tag == "ProviderNotFoundError"


@requirement("S119", "S123")
async def test_headers_of_a_call_are_an_argument_of_their_own(
    client: WireClient, tmp_path: Path
) -> None:
    elsewhere = CallOptions(headers={"x-opencode-directory": str(tmp_path)})
    assert (await client.locations.get(options=elsewhere))["directory"] == str(tmp_path)
    assert (await client.locations.get())["directory"] == str(tmp_path / "project")
    foreign = CallOptions(headers={"origin": "http://evil.example"})
    assert (await declared(client.health.get(options=foreign))).tag == "ForbiddenError"


async def test_a_prompt_too_large_is_refused_and_the_client_goes_on(
    client: WireClient,
) -> None:
    session = await client.sessions.create()
    huge = await declared(client.sessions.prompt(session["id"], text="x" * (33 * 1024 * 1024)))
    assert huge.status in {400, 413}
    assert (await client.sessions.history(session["id"])).items == ()


async def test_many_calls_at_once_do_not_mix(client: WireClient) -> None:
    async def one(number: int) -> None:
        made = await client.sessions.create(id=f"ses_number{number}")
        assert (await client.sessions.get(f"ses_number{number}")) == made

    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(one(number))


async def taken(stream: AsyncGenerator[T], count: int) -> list[T]:
    async with aclosing(stream), asyncio.timeout(PATIENCE_SECONDS):
        return [await anext(stream) for _ in range(count)]


async def read_on(stream: AsyncGenerator[object], started: asyncio.Event) -> None:
    async for _ in stream:
        started.set()


def is_idle(event: JsonObject) -> bool:
    return event["type"] == "session.status" and event["data"]["status"]["type"] == "idle"


@requirement("S192")
async def test_a_long_conversation_is_compacted_once(client: WireClient) -> None:
    session_id = await prompted(client, "hello " * 8_000)
    await client.sessions.compact(session_id)
    (checkpoint,) = plain(await client.sessions.context(session_id))
    assert (checkpoint["type"], checkpoint["reason"]) == ("compaction", "manual")
    assert "not an AI" in checkpoint["summary"]
    await client.sessions.compact(session_id)
    assert await client.sessions.context(session_id) == (checkpoint,)
    missing = await declared(client.sessions.compact("ses_missing"))
    assert missing.status == 404


@requirement("S61", "S141")
async def test_a_session_is_moved_and_its_provider_context_follows(
    client: WireClient, tmp_path: Path
) -> None:
    session_id = await prompted(client, "list the files here")
    before = await client.sessions.provider_context(session_id)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    await client.sessions.move(session_id, directory=str(elsewhere))
    moved = await client.sessions.get(session_id)
    assert moved["location"] == {"directory": str(elsewhere)}
    after = await client.sessions.provider_context(session_id)
    assert str(elsewhere) in plain(after)["pending"]["text"]
    assert "baseline" not in after
    assert after["messages"] == before["messages"]
    refused = await declared(
        client.sessions.move(session_id, directory="nowhere", move_changes=True)
    )
    assert (refused.status, refused.tag) == (400, "InvalidRequestError")
    assert refused.value["field"] == "destination"
