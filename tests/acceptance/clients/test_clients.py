"""The same scenarios with every client over every transport give the same results."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Final, get_args

import pytest

from perdure.client import ClientError, WireClient
from perdure.client.client import Client
from perdure.schema.codec import JsonObject, JsonValue
from perdure.testing import Pause, ScriptedModel, text, tool_call
from tests.contract.client.client_kinds import FailedCallError, Values, Voice, Way, voice
from tests.contract.client.hosts import PATIENCE_SECONDS, project
from tests.requirements import requirement

MINE: Final = "ses_story"
QUESTION: Final[JsonObject] = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "red", "description": "warm"}],
}


class Stage:
    """A client, and the model behind it."""

    def __init__(self, speaks: Voice, model: ScriptedModel) -> None:
        self.speaks = speaks
        self.model = model

    async def say(self, name: str, *arguments: JsonValue, **named: JsonValue) -> JsonValue:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.speaks.call(name, *arguments, **named)

    async def refusal(self, name: str, *arguments: JsonValue, **named: JsonValue) -> str:
        with pytest.raises(FailedCallError) as caught:
            await self.say(name, *arguments, **named)
        return str(caught.value)

    async def kinds(self) -> list[str]:
        page = await self.say("sessions.messages", MINE, order="asc")
        return [message["type"] for message in page["items"]]

    async def history(self) -> list[tuple[int, str]]:
        found = await self.say("sessions.history", MINE, limit=100)
        return [folders(event) for event in found["items"]]

    async def asked(self, kind: str, prompt: str) -> JsonObject:
        """Send a prompt, and wait for what its run asks a person."""
        live = self.speaks.stream("events.subscribe")
        async with asyncio.timeout(PATIENCE_SECONDS), aclosing(live) as events:
            assert (await anext(events))["type"] == "server.connected"
            await self.say("sessions.prompt", MINE, text=prompt)
            async for event in events:
                if event["type"] == kind:
                    return event["data"]
        raise AssertionError(f"{kind} never came")


def folders(event: JsonObject) -> tuple[int, str]:
    return event["durable"]["seq"], event["type"]


@asynccontextmanager
async def staged(root: Path, way: Way, values: Values) -> AsyncGenerator[Stage]:
    model = ScriptedModel()
    config = {"model": "mine/first"}
    (project(root) / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    async with voice(root, way, values, {"mine/first": model}) as speaks:
        stage = Stage(speaks, model)
        await stage.say("sessions.create", id=MINE)
        yield stage


@pytest.fixture(params=list(product(get_args(Way), get_args(Values))), ids="-".join)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stage]:
    way, values = request.param
    async with staged(tmp_path, way, values) as opened:
        yield opened


@requirement("S20", "S108", "S113", "S115", "S127", "S137", "S138")
async def test_a_prompt_is_admitted_once_answered_paged_and_streamed(stage: Stage) -> None:
    stage.model.turn(tool_call("read", {"path": "one.txt"})).turn(text("It says one."))
    again = await stage.say("sessions.create", id=MINE)
    assert again["id"] == MINE
    receipt = await stage.say("sessions.prompt", MINE, text="read it", id="msg_one")
    retried = await stage.say("sessions.prompt", MINE, text="read it", id="msg_one")
    assert retried["admittedSeq"] == receipt["admittedSeq"]
    await stage.say("sessions.wait", MINE)
    kinds = await stage.kinds()
    assert kinds == ["user", "assistant", "assistant"]
    assert await walked(stage) == kinds
    history = await stage.history()
    assert [seq for seq, _ in history] == list(range(1, len(history) + 1))
    assert history[0] == (receipt["admittedSeq"], "session.next.prompt.admitted")
    following = stage.speaks.stream("sessions.events", MINE, after=2)
    async with asyncio.timeout(PATIENCE_SECONDS), aclosing(following) as events:
        followed = [folders(await anext(events)) for _ in history[2:]]
    assert followed == history[2:]


async def walked(stage: Stage) -> list[str]:
    """The kinds of all messages, a page of one at a time, there and back."""
    page = await stage.say("sessions.messages", MINE, order="asc", limit=1)
    there = [*page["items"]]
    while page.get("next") is not None:
        page = await stage.say("sessions.messages", MINE, cursor=page["next"])
        there += page["items"]
    back = [*page["items"]]
    while page.get("previous") is not None:
        page = await stage.say("sessions.messages", MINE, cursor=page["previous"])
        back += page["items"]
    assert back == there[::-1]
    return [message["type"] for message in there]


@requirement("S117", "S138", "S139")
async def test_refusals_have_the_same_tags(stage: Stage) -> None:
    stage.model.turn(text("Fine."))
    await stage.say("sessions.prompt", MINE, text="hello", id="msg_one")
    await stage.say("sessions.wait", MINE)
    assert await stage.refusal("sessions.get", "ses_none") == "SessionNotFoundError"
    assert await stage.refusal("sessions.interrupt", "ses_none") == "SessionNotFoundError"
    assert await stage.refusal("sessions.message", MINE, "msg_none") == "MessageNotFoundError"
    other = await stage.refusal("sessions.prompt", MINE, text="other", id="msg_one")
    assert other == "ConflictError"
    assert await stage.refusal("sessions.messages", MINE, cursor="x") == "InvalidCursorError"
    assert await stage.refusal("sessions.list", limit=0) == "InvalidRequestError"
    assert await stage.refusal("sessions.permissions.get", MINE, "per_x") == (
        "PermissionNotFoundError"
    )


@requirement("S20", "S139")
async def test_an_interrupt_stops_the_run_and_keeps_the_session(stage: Stage) -> None:
    held = Pause()
    stage.model.turn(text("Let me think about it", hold=held)).turn(text("Here I am."))
    await stage.say("sessions.prompt", MINE, text="think")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await held.reached.wait()
    assert MINE in await stage.say("sessions.active")
    await stage.say("sessions.interrupt", MINE)
    assert await stage.say("sessions.active") == {}
    await stage.say("sessions.interrupt", MINE)
    await stage.say("sessions.prompt", MINE, text="still there?")
    await stage.say("sessions.wait", MINE)
    assert (await stage.kinds()).count("user") == 2


@requirement("S20")
async def test_a_permission_is_asked_for_and_given(stage: Stage) -> None:
    stage.model.turn(tool_call("read", {"path": "/etc/hosts"})).turn(text("Read."))
    asked = await stage.asked("permission.v2.asked", "read what is outside")
    assert await stage.say("sessions.permissions.list", MINE) == [asked]
    assert await stage.say("permissions.requests") == [asked]
    await stage.say("sessions.permissions.reply", MINE, asked["id"], "once")
    await stage.say("sessions.wait", MINE)
    assert await stage.say("sessions.permissions.list", MINE) == []
    assert "session.next.tool.success" in [kind for _, kind in await stage.history()]


@requirement("S20")
async def test_a_question_is_asked_and_answered(stage: Stage) -> None:
    stage.model.turn(tool_call("question", {"questions": [QUESTION]})).turn(text("Red it is."))
    asked = await stage.asked("question.v2.asked", "ask me")
    assert asked["questions"] == [QUESTION]
    assert await stage.say("sessions.questions.list", MINE) == [asked]
    await stage.say("sessions.questions.reply", MINE, asked["id"], (("red",),))
    await stage.say("sessions.wait", MINE)
    assert await stage.say("questions.requests") == []
    assert (await stage.kinds())[-1] == "assistant"


@requirement("S118", "S123")
@pytest.mark.parametrize("values", ["plain", "decoded"])
async def test_a_server_that_is_not_there_fails_at_the_first_call(values: str) -> None:
    nobody = "http://127.0.0.1:1"
    client = WireClient(nobody) if values == "plain" else Client(nobody)
    async with client:
        with pytest.raises(ClientError) as caught:
            await client.health.get()
    assert caught.value.reason == "transport"
