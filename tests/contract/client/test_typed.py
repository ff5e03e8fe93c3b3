"""The typed client: decoded values, branded ids, failures by their kind, over both transports."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from perdure.client import CallOptions, ClientError
from perdure.client.client import Client
from perdure.client.typed_events import DurableEvent, UnknownFact
from perdure.schema.errors import DomainError, MessageNotFoundError, SessionNotFoundError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.live_event import ServerConnected, TextDelta
from perdure.schema.models.model import ModelRef
from perdure.schema.session.event import PromptAdmitted
from perdure.schema.session.message import AssistantMessage, UserMessage
from perdure.schema.session.prompt import PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from tests.contract.client.hosts import PATIENCE_SECONDS, typed_in_memory, typed_over_network
from tests.requirements import requirement

DEMO = ModelRef(provider_id="demo", id="demo")
MINE = SessionID("ses_mine")


@pytest.fixture(params=[typed_over_network, typed_in_memory], ids=["network", "memory"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Client]:
    async with request.param(tmp_path) as client:
        yield client


@requirement("S20", "S115")
async def test_values_come_decoded_and_can_be_used_again(client: Client) -> None:
    session = await client.sessions.create(id=MINE, model=DEMO)
    assert await client.sessions.get(session.id) == session
    assert session.model == replace(DEMO, variant="default")
    receipt = await client.sessions.prompt(session.id, text="hello", id=MessageID("msg_one"))
    assert isinstance(receipt, AdmittedPrompt)
    again = await client.sessions.prompt(
        session.id, prompt=PromptInput(text="hello"), id=MessageID("msg_one")
    )
    # It may have been promoted meanwhile.
    assert replace(again, promoted_seq=receipt.promoted_seq) == receipt
    async with asyncio.timeout(PATIENCE_SECONDS):
        await client.sessions.wait(session.id)
    page = await client.sessions.messages(session.id, order="asc")
    assert [type(message) for message in page.items] == [UserMessage, AssistantMessage]
    assert await client.sessions.message(session.id, page.items[0].id) == page.items[0]


@requirement("S115", "S117")
async def test_a_declared_failure_is_raised_as_its_kind(client: Client) -> None:
    with pytest.raises(SessionNotFoundError) as unknown:
        await client.sessions.get(SessionID("ses_missing"))
    assert unknown.value.wire()["sessionID"] == unknown.value.session_id == "ses_missing"
    await client.sessions.create(id=MINE)
    with pytest.raises(MessageNotFoundError):
        await client.sessions.message(MINE, MessageID("msg_none"))
    stream = client.sessions.events(SessionID("ses_missing"))
    with pytest.raises(DomainError):
        await anext(stream)


async def test_a_text_and_a_prompt_at_once_are_refused_before_anything_is_sent(
    client: Client,
) -> None:
    with pytest.raises(TypeError, match="`text`"):
        await client.sessions.prompt(MINE, text="a", prompt=PromptInput(text="b"))
    with pytest.raises(TypeError, match="`text`"):
        await client.sessions.prompt(MINE)


@requirement("S23", "S135")
async def test_a_page_leads_to_its_neighbours(client: Client) -> None:
    for number in range(3):
        await client.sessions.create(id=SessionID(f"ses_{number}"))
    first = await client.sessions.list(limit=2, order="asc")
    assert ([one.id for one in first.items], first.previous) == (["ses_0", "ses_1"], None)
    second = await client.sessions.list(cursor=first.next)
    assert ([one.id for one in second.items], second.next) == (["ses_2"], None)


@requirement("S129")
async def test_events_carry_facts_and_their_place(client: Client) -> None:
    session = await client.sessions.create(model=DEMO)
    async with aclosing(client.events.subscribe()) as live, asyncio.timeout(PATIENCE_SECONDS):
        assert isinstance((await anext(live)).data, ServerConnected)
        await client.sessions.prompt(session.id, text="hello")
        while not isinstance((await anext(live)).data, TextDelta):
            pass
        await client.sessions.wait(session.id)
    history = await client.sessions.history(session.id, limit=1)
    assert history.has_more
    (first,) = history.items
    assert isinstance(first.data, PromptAdmitted)
    assert (first.durable.aggregate_id, first.durable.seq) == (session.id, 1)
    async with aclosing(client.sessions.events(session.id, after=0)) as events:
        assert await anext(events) == first


async def test_what_a_location_holds_is_decoded(client: Client, tmp_path: Path) -> None:
    where = str(tmp_path / "project")
    assert (await client.locations.get(directory=where)).directory == where
    assert await client.files.read("one.txt", directory=where) == b"one\n"
    assert [entry.path for entry in await client.files.list(directory=where)] == ["one.txt"]
    assert await client.sessions.active() == {}


class Told(httpx2.AsyncBaseTransport):
    """A transport that a caller brings: it notes what is asked and has one answer."""

    def __init__(self, answer: httpx2.Response) -> None:
        self._answer = answer
        self.asked: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        return self._answer


@asynccontextmanager
async def answering(answer: httpx2.Response) -> AsyncGenerator[Client]:
    async with Client("http://nowhere.invalid", transport=Told(answer)) as client:
        yield client


def streamed(*events: bytes) -> httpx2.Response:
    body = b"".join(b"data: " + event + b"\n\n" for event in events)
    return httpx2.Response(200, content=body, headers={"content-type": "text/event-stream"})


@requirement("S109", "S115")
async def test_an_answer_that_does_not_fit_the_contract_is_malformed() -> None:
    for body in (b'{"data":{"id":7}}', b'{"date":{}}', b"[]", b"{", b"\xff"):
        told = httpx2.Response(200, content=body, headers={"content-type": "application/json"})
        async with answering(told) as client:
            with pytest.raises(ClientError) as caught:
                await client.sessions.get(MINE)
        assert caught.value.reason == "malformed-response"


async def test_a_failure_of_a_newer_server_is_an_unexpected_status() -> None:
    told = httpx2.Response(418, json={"_tag": "TeapotError", "message": "short and stout"})
    async with answering(told) as client:
        with pytest.raises(ClientError) as caught:
            await client.sessions.get(MINE)
    assert (caught.value.reason, caught.value.status) == ("unexpected-status", 418)


async def test_an_event_of_a_newer_server_arrives_whole() -> None:
    place = b'"durable":{"aggregateID":"ses_mine","seq":4,"version":9}'
    event = b'{"id":"evt_1","type":"session.next.novelty",' + place + b',"data":{"a":1}}'
    async with answering(streamed(event)) as client:
        found = [one async for one in client.sessions.events(MINE)]
    assert isinstance(found[0], DurableEvent)
    assert (found[0].data, found[0].durable.seq) == (UnknownFact({"a": 1}), 4)


@pytest.mark.parametrize(
    "event", [b'{"id":"evt_1","type":"x","data":{}}', b'{"id":1}', b"[", b"\xff"]
)
async def test_a_durable_event_without_its_place_ends_the_stream(event: bytes) -> None:
    async with answering(streamed(event)) as client:
        with pytest.raises(ClientError) as caught:
            await anext(client.sessions.events(MINE))
    assert caught.value.reason == "malformed-response"


@requirement("S119", "S123")
async def test_headers_of_a_call_win_over_those_of_the_client() -> None:
    transport = Told(httpx2.Response(204))
    given = {"x-one": "client", "x-two": "client"}
    async with Client("http://nowhere.invalid", headers=given, transport=transport) as client:
        assert transport.asked == []
        await client.sessions.interrupt(MINE, options=CallOptions(headers={"x-one": "call"}))
    (asked,) = transport.asked
    assert (asked.headers["x-one"], asked.headers["x-two"]) == ("call", "client")


@pytest.mark.parametrize("model", ["demo/demo#default", DEMO])
async def test_a_model_is_named_by_a_string_or_a_reference(
    tmp_path: Path, model: str | ModelRef
) -> None:
    async with typed_in_memory(tmp_path) as client:
        session = await client.sessions.create(model="mine/a/b")
        assert session.model == ModelRef(provider_id="mine", id="a/b", variant="default")
        await client.sessions.switch_model(session.id, model)
        switched = (await client.sessions.get(session.id)).model
        assert switched == ModelRef(provider_id="demo", id="demo", variant="default")
        with pytest.raises(
            ValueError, match=r"'demo' is not the name of a model; write provider/m"
        ):
            await client.sessions.switch_model(session.id, "demo")
