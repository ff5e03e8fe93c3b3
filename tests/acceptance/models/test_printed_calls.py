"""Local models that print their tool calls, or cannot make any, work with tools all the same."""

from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

GLOB = '{"name": "glob", "arguments": {"pattern": "*.md"}}'


def configured(folders: ProjectFolders, **model: object) -> ProjectFolders:
    """`model` is laid over what is configured for the model."""
    path = folders.project / "opencode.json"
    configuration: JsonObject = codec.decode_any(path.read_bytes())
    configuration["providers"]["fake"]["models"]["fake-model"] |= model
    path.write_bytes(codec.encode(configuration))
    (folders.project / "notes.md").write_text("hello")
    return folders


async def test_a_call_that_a_local_model_printed_is_run_and_leaves_the_text(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "notes.md").write_text("hello")
    provider.then(
        text("I look.\n<tool", f"_call>\n{GLOB[:20]}", f"{GLOB[20:]}\n</tool_call>"),
        text("There is one."),
    )
    session = await api.create()
    async with api.events(session) as stream:
        _, first, second = await api.ask(session, "which notes are there?")
        events = await stream.until("session.next.tool.success")
    said, called = first["content"]
    assert (said["type"], said["text"]) == ("text", "I look.")
    assert (called["name"], called["state"]["status"]) == ("glob", "completed")
    assert called["state"]["input"] == {"pattern": "*.md"}
    assert "notes.md" in called["state"]["content"][0]["text"]
    assert first["finish"] == "tool-calls"
    assert second["content"][0]["text"] == "There is one."
    ended = next(event for event in events if event["type"] == "session.next.text.ended")
    assert ended["data"]["text"] == "I look."
    # The model is shown its call as it would have made it, with the result.
    _, _, assistant, result = provider.requests[1].messages
    assert assistant["tool_calls"][0]["function"]["name"] == "glob"
    assert assistant["content"] == "I look."
    assert "notes.md" in result["content"]


@pytest.mark.parametrize(
    "said",
    [
        f"Like this:\n```json\n{GLOB}\n```",
        f"{GLOB}\nShall I?",
        '{"name": "launch", "arguments": {}}',
        f"<tool_call>{GLOB[:-2]}",
    ],
)
async def test_what_only_looks_like_a_call_stays_what_was_said(
    api: Api, provider: ScriptedProvider, said: str
) -> None:
    provider.then(text(said))
    _, answer = await api.ask(await api.create(), "how would you look?")
    assert [part["text"] for part in answer["content"]] == [said]
    assert answer["finish"] == "stop"
    assert len(provider.requests) == 1


async def test_a_printed_call_beside_a_native_one_or_in_a_cut_answer_is_text(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    provider.then(text(GLOB, finish="length"))
    _, answer = await api.ask(session, "look")
    assert answer["content"] == [{"type": "text", "id": "text-0", "text": GLOB}]
    provider.then(calls(Call("glob", {"pattern": "*"}), saying=GLOB))
    messages = await api.ask(session, "again")
    assert [part["type"] for part in messages[-2]["content"]] == ["text", "tool"]
    assert messages[-2]["content"][0]["text"] == GLOB


async def test_an_option_leaves_printed_calls_alone(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    body = {"request": {"body": {"toolCalls": "native"}}}
    folders = configured(make_folders(tmp_path, provider), **body)
    provider.then(text(GLOB))
    async with running(folders) as instance:
        _, answer = await instance.api.ask(await instance.api.create(), "look")
    assert answer["content"][0]["text"] == GLOB
    assert "toolCalls" not in provider.requests[0].body
    assert "tool_calls" not in provider.requests[0].body


async def test_a_local_model_without_tool_calls_is_held_to_a_schema(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = configured(make_folders(tmp_path, provider), capabilities={"tools": False})
    provider.then(text(GLOB), text('{"text": "There', ' is one."}'))
    async with running(folders) as instance:
        api = instance.api
        _, first, second = await api.ask(await api.create(), "which notes are there?")
    assert [part["type"] for part in first["content"]] == ["text", "tool"]
    assert first["content"][1]["state"]["status"] == "completed"
    assert second["content"][0]["text"] == "There is one."
    assert second["finish"] == "stop"
    asked, continued = provider.requests
    assert "tools" not in asked.body
    schema = asked.body["response_format"]["json_schema"]["schema"]
    named = {way["properties"]["name"]["enum"][0] for way in schema["anyOf"][1:]}
    assert {"glob", "read", "bash"} <= named
    assert schema["anyOf"][0]["properties"] == {"text": {"type": "string"}}
    assert "## glob" in asked.texts("system")[0]
    # Its server knows no calls: what it did and what came of it are texts.
    assert continued.roles == ["system", "user", "assistant", "user"]
    assert codec.decode_any(continued.messages[2]["content"]) == codec.decode_any(GLOB)
    assert continued.messages[3]["content"].startswith("Result of glob:\n")
    assert continued.raw.startswith(asked.raw[: asked.raw.index(b'"messages"')])


async def test_a_server_that_ignores_the_schema_still_answers(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    body = {"request": {"body": {"tool_calls": "constrained"}}}
    folders = configured(make_folders(tmp_path, provider), **body)
    provider.then(text("Hello."), text('{"text": "cut o', finish="length"))
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        assert (await api.ask(session, "hi"))[-1]["content"][0]["text"] == "Hello."
        assert (await api.ask(session, "more"))[-1]["content"][0]["text"] == '{"text": "cut o'
