"""A client that joins in the middle of an answer shows the whole of it: no gap, no repeat."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

import pytest
from msgspec import UNSET

import perdure
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.ids import Seq, SessionID
from perdure.schema.live_event import SessionReplayed
from perdure.schema.session.message import AssistantMessage, ToolPart
from tests.acceptance.clients.gated_answer import THOUGHTS, WORDS, GatedAnswers
from tests.support.api import Api
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

PATIENCE_SECONDS: Final = 30

Key = tuple[str, str, str]
Shown = dict[str, str]
"""What is shown at the end: by kind and id of the part."""


@dataclass(slots=True)
class Screen:
    """Shows the parts of answers, by the rule of the contract: a delta beyond the cursor is new."""

    parts: dict[Key, tuple[str, int | None]] = field(
        default_factory=dict[Key, tuple[str, int | None]]
    )

    def show(self, message_id: str, kind: str, id: str, said: str, cursor: int | None) -> None:
        self.parts[message_id, kind, id] = (said, cursor)

    def hear(self, type: str, data: JsonObject) -> None:
        key = _key(data)
        if type.endswith(".started") and key is not None:
            self.parts.setdefault(key, ("", 0))
        if not type.endswith(".delta") or key is None:
            return
        said, cursor = self.parts[key]
        # A part without a cursor had ended before it was read.
        if cursor is not None and data["cursor"] > cursor:
            assert data["cursor"] == cursor + 1, f"a gap before {data}"
            self.parts[key] = (said + data["delta"], data["cursor"])

    @property
    def shown(self) -> Shown:
        return {f"{kind} {part}": said for (_, kind, part), (said, _) in self.parts.items()}


def _key(data: JsonObject) -> Key | None:
    for kind, name in (("text", "textID"), ("reasoning", "reasoningID"), ("tool", "callID")):
        if name in data:
            return data["assistantMessageID"], kind, data[name]
    return None


def show_message(screen: Screen, message: JsonObject) -> None:
    for part in message.get("content", ()):
        said = part["state"]["input"] if part["type"] == "tool" else part["text"]
        said = said if isinstance(said, str) else codec.encode(said).decode()
        screen.show(message["id"], part["type"], part["id"], said, part.get("cursor"))


Read = Callable[[Api, str], Awaitable[list[JsonObject]]]
Join = Callable[[Api, str, asyncio.Event], Awaitable[Shown]]


async def join_over_http(api: Api, session: str, joined: asyncio.Event, read: Read) -> Shown:
    screen = Screen()
    async with api.stream("/api/event") as live:
        await live.event()
        for message in await read(api, session):
            show_message(screen, message)
        joined.set()
        while True:
            event = await live.event()
            if event["data"].get("sessionID") != session:
                continue
            screen.hear(event["type"], event["data"])
            if event["type"].endswith("step.ended") and event["data"]["finish"] == "stop":
                return screen.shown


async def by_snapshot(api: Api, session: str, joined: asyncio.Event) -> Shown:
    async def read(api: Api, session: str) -> list[JsonObject]:
        return (await api.get(f"/api/session/{session}/snapshot"))["data"]["messages"]

    return await join_over_http(api, session, joined, read)


async def by_messages(api: Api, session: str, joined: asyncio.Event) -> Shown:
    return await join_over_http(api, session, joined, Api.messages)


async def by_python_client(api: Api, session: str, joined: asyncio.Event) -> Shown:
    screen = Screen()
    async with (
        perdure.connect(f"http://127.0.0.1:{api.port}") as client,
        aclosing(client.events.subscribe()) as live,
    ):
        await anext(live)
        for message in (await client.sessions.snapshot(SessionID(session))).messages:
            if isinstance(message, AssistantMessage):
                show_typed(screen, message)
        joined.set()
        async for event in live:
            data = codec.to_json_value(event.data)
            if data.get("sessionID") == session:
                screen.hear(event.type, data)
                ended = event.data
                if isinstance(ended, perdure.events.StepEnded) and ended.finish == "stop":
                    return screen.shown
    raise AssertionError("the stream ended")


def show_typed(screen: Screen, message: AssistantMessage) -> None:
    for part in message.content:
        said = codec.encode(part.state.input).decode() if isinstance(part, ToolPart) else part.text
        if isinstance(part, ToolPart) and isinstance(part.state.input, str):
            said = part.state.input
        kind = codec.to_json_value(part)["type"]
        cursor = None if part.cursor is UNSET else part.cursor
        screen.show(message.id, kind, part.id, said, cursor)


@pytest.mark.parametrize("join", [by_snapshot, by_messages, by_python_client])
async def test_whoever_joins_at_any_delta_shows_the_whole_answer(
    api: Api, provider: ScriptedProvider, join: Join
) -> None:
    answer = GatedAnswers()
    first = calls(Call("read", {"path": "a.txt"}), saying="x")
    provider.then(answer.gated(first), answer.gated(text(*WORDS, reasoning=THOUGHTS)))
    session = await api.create()
    await api.prompt(session, "tell me")
    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        joiners: list[asyncio.Task[Shown]] = []
        for gate in answer.gates[:-1]:
            joined = asyncio.Event()
            joiners.append(group.create_task(_joining(join, api, session, joined)))
            await joined.wait()
            gate.set()
        answer.gates[-1].set()
    durable = Screen()
    for message in await api.messages(session):
        show_message(durable, message)
    for joiner in joiners:
        assert joiner.result() == durable.shown


async def _joining(join: Join, api: Api, session: str, joined: asyncio.Event) -> Shown:
    return await join(api, session, joined)


async def test_a_part_that_has_ended_has_no_cursor(api: Api) -> None:
    session = await api.create()
    for message in await api.ask(session, "hi"):
        assert all("cursor" not in part for part in message.get("content", ()))


async def test_the_end_of_a_replay_is_an_event_for_the_client_that_asks(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    await api.ask(session, "hi")
    count = len(await api.history(session))
    async with perdure.connect(f"http://127.0.0.1:{api.port}") as client:
        marks: list[SessionReplayed] = []
        options = perdure.CallOptions(replayed=marks.append)
        async with aclosing(client.sessions.events(SessionID(session), options=options)) as events:
            for _ in range(count):
                await anext(events)
            await api.prompt(session, "again")
            assert (await anext(events)).durable.seq == count + 1
        assert marks == [SessionReplayed(session_id=SessionID(session), seq=Seq(count))]
    async with api.stream(f"/api/session/{session}/event?replayed=true") as stream:
        while (frame := await stream.frame()) is not None and "session.replayed" not in frame.text:
            pass
    assert frame is not None
    assert frame.text.startswith("event: session.replayed\n")
    assert frame.id is None, "it is no place to resume from"
