"""Instruction files reach the model once, exactly, and every change as one message after that."""

from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


def systems(request_messages: list[dict[str, str]]) -> list[str]:
    return [message["content"] for message in request_messages if message["role"] == "system"]


@requirement("S78", "S79", "S27", "S28", "S54")
async def test_a_change_is_one_message_behind_an_unchanged_beginning(
    folders: ProjectFolders, api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("one"), text("two"), text("three"))
    file = folders.project / "AGENTS.md"
    file.write_text("Be kind.")
    session = await api.create()
    await api.ask(session, "first")
    file.write_text("Be quick.")
    await api.ask(session, "second")
    messages = await api.ask(session, "third")
    (told,) = [message for message in messages if message["type"] == "system"]
    assert told["text"].endswith(f"Instructions from {file}:\nBe quick.")
    first, second, third = (request.messages for request in provider.requests)
    assert "Be kind." in systems(first)[0]
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    # The message follows the prompt that was promoted at the same boundary.
    assert second[-1] == {"role": second[-1]["role"], "content": second[-1]["content"]}
    assert "Be quick." in second[-1]["content"]
    assert "Be quick." not in third[-1]["content"]


@requirement("S79", "S44")
async def test_taking_the_last_file_away_is_told_too(
    folders: ProjectFolders, api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("one"), text("two"))
    file = folders.project / "AGENTS.md"
    file.write_text("Be kind.")
    session = await api.create()
    await api.ask(session, "first")
    file.unlink()
    messages = await api.ask(session, "second")
    assert [message["text"] for message in messages if message["type"] == "system"] == [
        "There are no instruction files any more. Those given before no longer apply."
    ]


@requirement("S51", "S36", "S58")
async def test_after_compaction_the_message_stays_listed_and_is_folded_into_the_baseline(
    folders: ProjectFolders, api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("one"), text("two"), text("the summary"), text("three"))
    file = folders.project / "AGENTS.md"
    file.write_text("Be kind.")
    session = await api.create()
    # Longer than what compaction leaves as it is.
    await api.ask(session, "word " * 10_000)
    file.write_text("Be quick.")
    await api.ask(session, "second")
    await api.post(f"/api/session/{session}/compact")
    messages = await api.ask(session, "third")
    assert [message["type"] for message in messages].count("system") == 1
    sent = provider.requests[-1].messages
    assert "Be quick." in sent[0]["content"]
    assert "Be kind." not in str(sent)
    # The checkpoint may quote it as history; it is not told once more.
    assert not any("<system-update>" in message["content"] for message in sent)


@requirement("S81", "S55")
async def test_what_lies_beside_a_file_that_was_read_is_told_and_stays_told_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    inner = folders.project / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("Only tabs in here.")
    (inner / "code.py").write_text("pass\n")
    reading = calls(Call("read", {"path": "inner/code.py"}))
    provider.then(reading, text("read"), text("again"), text("fresh"))
    async with running(folders) as first:
        session = await first.api.create()
        await first.api.ask(session, "read it")
    assert not any("Only tabs" in told for told in systems(provider.requests[0].messages))
    assert any("Only tabs" in message["content"] for message in provider.requests[1].messages[-1:])
    async with running(folders) as second:
        messages = await second.api.ask(session, "go on")
        assert len([message for message in messages if message["type"] == "system"]) == 1
        other = await second.api.create()
        await second.api.ask(other, "hello")
    assert not any("Only tabs" in told for told in systems(provider.requests[3].messages))


@requirement("S81")
async def test_a_failed_read_discovers_nothing(
    folders: ProjectFolders, api: Api, provider: ScriptedProvider
) -> None:
    inner = folders.project / "inner"
    inner.mkdir()
    (inner / "AGENTS.md").write_text("Only tabs in here.")
    provider.then(calls(Call("read", {"path": "inner/missing.py"})), text("sorry"))
    session = await api.create()
    messages = await api.ask(session, "read it")
    assert [message for message in messages if message["type"] == "system"] == []


@requirement("S59", "S27")
async def test_which_model_it_is_belongs_to_the_turn(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("one"), text("two"))
    session = await api.create()
    await api.ask(session, "first")
    switch = {"model": {"providerID": "fake", "id": "other-model"}}
    await api.post(f"/api/session/{session}/model", switch)
    messages = await api.ask(session, "second")
    (told,) = [message["text"] for message in messages if message["type"] == "system"]
    assert told == "You are the model fake/other-model from now on."
    assert "You are the model fake/fake-model." in provider.requests[1].messages[0]["content"]
