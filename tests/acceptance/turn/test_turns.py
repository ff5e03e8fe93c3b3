"""What a turn leaves behind: facts in order, messages, tokens, money, and a stable request."""

import asyncio
import itertools

import pytest

from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import (
    Call,
    Reply,
    Request,
    ScriptedProvider,
    calls,
    text,
)

ONE_TEXT = ["step.started", "text.started", "text.ended", "step.ended"]
ONE_CALL = ["tool.input.started", "tool.input.ended", "tool.called"]


def tool_of(message: JsonObject, index: int = 0) -> JsonObject:
    return [part for part in message["content"] if part["type"] == "tool"][index]


@requirement("S13", "S73", "S149", "S154", "S157", "S162")
async def test_a_text_turn_leaves_its_facts_in_order(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("Hel", "lo"))
    session = await api.create()
    user, assistant = await api.ask(session, "hi")
    events = await api.history(session)
    assert [event["durable"]["seq"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert await api.facts(session) == ["prompt.admitted", "prompted", *ONE_TEXT]
    owners = {e["data"]["assistantMessageID"] for e in events if e["durable"]["seq"] > 2}
    assert owners == {assistant["id"]}
    assert (user["text"], assistant["content"][0]["text"]) == ("hi", "Hello")
    assert assistant["finish"] == "stop"
    assert assistant["time"]["completed"] >= assistant["time"]["created"]


@requirement("S1", "S7", "S25")
async def test_the_baseline_is_told_in_the_request_and_is_no_message(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await api.create()
    await api.ask(session, "hi")
    request = provider.requests[0]
    assert request.roles == ["system", "user"]
    assert str(folders.project) in request.messages[0]["content"]
    context = (await api.get(f"/api/session/{session}/context"))["data"]
    assert [message["type"] for message in context] == ["user", "assistant"]


@requirement("S152")
async def test_reasoning_is_kept_apart_from_the_answer(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("42", reasoning=("let me ", "think")))
    session = await api.create()
    *_, assistant = await api.ask(session, "why")
    reasoning, answer = assistant["content"]
    assert (reasoning["type"], reasoning["text"]) == ("reasoning", "let me think")
    assert (answer["type"], answer["text"]) == ("text", "42")


@requirement("S167", "S169")
async def test_a_tool_call_is_recorded_run_settled_and_answered(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    (folders.project / "notes.txt").write_text("the notes")
    provider.then(calls(Call("read", {"path": "notes.txt"}), saying="Reading."), text("read it"))
    session = await api.create()
    messages = await api.ask(session, "read")
    assert await api.facts(session, after=2) == [
        *("step.started", "text.started", "text.ended"),
        *ONE_CALL,
        *("tool.success", "step.ended"),
        *ONE_TEXT,
    ]
    state = tool_of(messages[1])["state"]
    assert state["status"] == "completed"
    assert state["structured"]["content"] == "the notes"
    assert messages[1]["finish"] == "tool-calls"
    assert messages[1]["id"] != messages[2]["id"]
    answered = provider.requests[1].messages[-1]
    assert answered["tool_call_id"] == "call_0"
    assert "the notes" in answered["content"]


@requirement("S169")
async def test_tools_of_one_answer_run_side_by_side(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    # Each waits for what the other makes: one after the other they would never end.
    meet = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done; echo met"
    provider.then(
        calls(
            Call("bash", {"command": meet.format("left", "right"), "timeout": 10_000}),
            Call("bash", {"command": meet.format("right", "left"), "timeout": 10_000}),
        )
    )
    session = await api.create()
    _, assistant, _ = await api.ask(session, "meet")
    outputs = [tool_of(assistant, index)["state"]["content"][0]["text"] for index in (0, 1)]
    assert outputs == ["met\n", "met\n"]
    assert provider.requests[1].roles[-2:] == ["tool", "tool"]


@requirement("S162")
async def test_call_ids_may_repeat_from_turn_to_turn(api: Api, provider: ScriptedProvider) -> None:
    provider.then(
        calls(Call("bash", {"command": "echo one"}, "call_x")),
        calls(Call("bash", {"command": "echo two"}, "call_x")),
    )
    session = await api.create()
    _, first, second, _ = await api.ask(session, "twice")
    shown = [tool_of(message)["state"]["content"][0]["text"] for message in (first, second)]
    assert shown == ["one\n", "two\n"]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("read", '{"path": '), "JSON"),
        (Call("read", "[1]"), "path"),
        (Call("no_such_tool", {}), "no_such_tool"),
        (Call("read", {"path": 7}), "path"),
        (Call("read", {"path": "missing.txt"}), "missing.txt"),
        (Call("read", {"path": "../" * 40 + "etc/shadow\0"}), ""),
    ],
    ids=["cut-off", "no-object", "unknown-tool", "wrong-type", "missing-file", "hostile-path"],
)
async def test_a_call_that_cannot_be_run_is_answered_to_the_model(
    api: Api, provider: ScriptedProvider, call: Call, told: str
) -> None:
    provider.then(calls(call), text("I see"))
    session = await api.create()
    _, assistant, answer = await api.ask(session, "try")
    state = tool_of(assistant)["state"]
    assert state["status"] == "error"
    assert told in state["error"]["message"]
    assert provider.requests[1].roles[-2:] == ["assistant", "tool"]
    assert told in provider.requests[1].messages[-1]["content"]
    assert answer["content"][0]["text"] == "I see"


async def test_an_empty_answer_is_a_finished_step(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text())
    session = await api.create()
    _, assistant = await api.ask(session, "say nothing")
    assert await api.facts(session, after=2) == ["step.started", "step.ended"]
    assert (assistant["content"], assistant["finish"]) == ([], "stop")


async def test_an_answer_that_was_too_long_says_so(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("and so on", finish="length"))
    session = await api.create()
    _, assistant = await api.ask(session, "talk")
    assert assistant["finish"] == "length"


async def test_tokens_and_cost_are_counted_and_add_up(api: Api, provider: ScriptedProvider) -> None:
    session = await api.create()
    _, assistant = await api.ask(session, "count")
    tokens = {"input": 100, "output": 25, "reasoning": 5, "cache": {"read": 20, "write": 0}}
    assert assistant["tokens"] == tokens
    # Dollars for a million: 1 in, 10 out, half a dollar for what was cached.
    assert assistant["cost"] == pytest.approx((100 + 30 * 10 + 20 * 0.5) / 1e6)
    await api.ask(session, "again")
    shown = await api.session(session)
    assert shown["tokens"]["input"] == 200
    assert shown["tokens"]["cache"]["read"] == 40
    assert shown["cost"] == pytest.approx(2 * assistant["cost"])


async def test_a_session_is_named_after_its_first_prompt_and_moves_up(api: Api) -> None:
    session = await api.create()
    before = await api.session(session)
    await api.ask(session, "\n  Fix the  parser\nplease")
    await api.ask(session, "Something else")
    after = await api.session(session)
    assert after["title"] == "Fix the parser"
    assert after["time"]["created"] == before["time"]["created"]
    assert after["time"]["updated"] > before["time"]["updated"]


@requirement("S55")
async def test_a_restart_does_not_change_a_byte_of_what_is_sent(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as before:
        session = await before.api.create()
        await before.api.ask(session, "before")
    async with running(folders) as after:
        await after.api.ask(session, "after")
    first, second = provider.requests
    assert second.raw.startswith(conversation(first))


@requirement("S54", "S56")
async def test_each_request_begins_with_the_one_before(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(
        text("one"),
        calls(Call("bash", {"command": "echo 1"}), Call("bash", {"command": "echo 2"})),
        text("two", reasoning=("hm",)),
        text("three"),
    )
    session = await api.create()
    for words in ("a", "b", "c"):
        await api.ask(session, words)
    requests = provider.requests
    assert len(requests) == 4
    for before, after in itertools.pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.raw.startswith(conversation(before))


def conversation(request: Request) -> bytes:
    """The bytes of a request up to the end of its last message."""
    return request.raw[: request.raw.rindex(b"]")]


async def test_many_sessions_run_at_once_without_mixing(
    api: Api, provider: ScriptedProvider
) -> None:
    def echo(request: Request) -> Reply:
        return text("you said ", request.texts("user")[-1])

    provider.otherwise = echo
    sessions = [await api.create() for _ in range(25)]
    transcripts = await asyncio.gather(
        *(api.ask(session, f"marker {session}") for session in sessions)
    )
    for session, (_, assistant) in zip(sessions, transcripts, strict=True):
        assert assistant["content"][0]["text"] == f"you said marker {session}"
    assert len(provider.requests) == 25
