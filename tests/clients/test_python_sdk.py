"""The official Python SDK of OpenCode: every call of it that a server of 1.18 answers."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from opencode_ai import APIStatusError, AsyncOpencode

from tests.support.instance import Instance
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

WAIT_SECONDS_MAX = 20


@pytest.fixture
async def sdk(instance: Instance) -> AsyncGenerator[AsyncOpencode]:
    address = f"http://127.0.0.1:{instance.api.port}"
    async with AsyncOpencode(base_url=address, max_retries=0, timeout=WAIT_SECONDS_MAX) as opened:
        yield opened


async def chat(sdk: AsyncOpencode, session_id: str, prompt: str) -> str:
    """Send a prompt; the id of its answer."""
    answer = await sdk.session.chat(
        session_id,
        model_id="fake-model",
        provider_id="fake",
        parts=[{"type": "text", "text": prompt}],
    )
    return answer.model_dump()["info"]["id"]


async def test_a_conversation_with_events(sdk: AsyncOpencode, provider: ScriptedProvider) -> None:
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
    provider.then(calls(edit), text("All ", "done."))
    session = await sdk.session.create()
    kinds: list[str] = []
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        async with await sdk.event.list() as events:
            asked = asyncio.create_task(chat(sdk, session.id, "edit it"))
            async for event in events:
                kinds.append(event.type)
                if event.type == "session.idle":
                    break
            answer = await asked
    assert kinds[0] == "server.connected"
    assert {"message.updated", "message.part.updated", "session.updated"} <= set(kinds)
    messages = await sdk.session.messages(session.id)
    assert [message.info.role for message in messages] == ["user", "assistant", "assistant"]
    assert messages[-1].info.id == answer
    parts = [part for message in messages for part in message.parts]
    assert [part.type for part in parts] == [
        "text",
        *("step-start", "tool", "step-finish"),
        *("step-start", "text", "step-finish"),
    ]
    assert [each.id for each in await sdk.session.list()] == [session.id]


async def test_a_session_is_reverted_compacted_stopped_and_deleted(
    sdk: AsyncOpencode, provider: ScriptedProvider
) -> None:
    session = await sdk.session.create()
    await chat(sdk, session.id, "first")
    await chat(sdk, session.id, "second")
    second = (await sdk.session.messages(session.id))[2].info
    reverted = await sdk.session.revert(session.id, message_id=second.id)
    assert reverted.revert is not None
    assert reverted.revert.message_id == second.id
    assert (await sdk.session.unrevert(session.id)).revert is None
    assert await sdk.session.abort(session.id) is True
    provider.then(text("A summary."))
    done = await sdk.session.summarize(session.id, model_id="fake-model", provider_id="fake")
    assert done is True
    assert await sdk.session.delete(session.id) is True
    assert await sdk.session.list() == []


async def test_the_configuration_providers_and_log(sdk: AsyncOpencode) -> None:
    config = await sdk.config.get()
    assert config.model == "fake/fake-model"
    found = await sdk.app.providers()
    assert "fake-model" in {each.id: each for each in found.providers}["fake"].models
    assert await sdk.app.log(level="info", message="hello", service="test") is True


async def test_files_and_texts_are_found(sdk: AsyncOpencode) -> None:
    assert "notes.txt" in await sdk.find.files(query="notes")
    (found,) = await sdk.find.text(pattern="tw.")
    assert (found.path.text, found.line_number) == ("notes.txt", 2)
    assert await sdk.find.symbols(query="anything") == []
    assert isinstance(await sdk.file.status(), list)


async def test_what_is_not_offered_says_so(sdk: AsyncOpencode) -> None:
    session = await sdk.session.create()
    with pytest.raises(APIStatusError, match="not offered"):
        await sdk.session.share(session.id)
    with pytest.raises(APIStatusError, match="not offered"):
        await sdk.session.unshare(session.id)


async def test_the_project_is_described_and_the_terminal_is_told(
    sdk: AsyncOpencode, provider: ScriptedProvider
) -> None:
    session = await sdk.session.create()
    provider.then(text("Written."))
    done = await sdk.session.init(
        session.id, message_id="msg_init", model_id="fake-model", provider_id="fake"
    )
    assert done is True
    assert "AGENTS.md" in provider.requests[0].texts("user")[0]
    assert await sdk.tui.append_prompt(text="hello") is True
    assert await sdk.tui.open_help() is True
