"""Steering joins the work in progress, queued prompts wait their turn, switches count from next."""

import asyncio

from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


def work(command: str = "true") -> Call:
    return Call("bash", {"command": command})


def prompted(events: list[JsonObject]) -> list[str]:
    """What was promoted and when steps began, in order."""
    kinds = {"session.next.prompted": "said", "session.next.step.started": "step"}
    return [
        event["data"]["prompt"]["text"] if kinds[event["type"]] == "said" else "step"
        for event in events
        if event["type"] in kinds
    ]


@requirement("S10", "S68")
async def test_a_steer_sent_while_a_tool_runs_is_seen_by_the_next_turn(
    api: Api, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(calls(work(), hold=hold), text("stopped"))
    session = await api.create()
    await api.prompt(session, "start")
    await provider.arrived(1)
    await api.prompt(session, "no, stop", delivery="steer")
    hold.set()
    await api.wait(session)
    assert provider.requests[0].texts("user") == ["start"]
    assert provider.requests[1].roles == ["system", "user", "assistant", "tool", "user"]
    assert provider.requests[1].texts("user")[-1] == "no, stop"
    assert len(provider.requests) == 2


@requirement("S13", "S68")
async def test_a_steer_after_the_last_tool_gets_a_turn_of_its_own(
    api: Api, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("done", hold=hold), text("and that"))
    session = await api.create()
    await api.prompt(session, "start")
    await provider.arrived(1)
    await api.prompt(session, "one more thing")
    hold.set()
    await api.wait(session)
    assert prompted(await api.history(session)) == ["start", "step", "one more thing", "step"]


@requirement("S14", "S69")
async def test_one_wake_runs_the_steer_then_the_queue_one_by_one(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    await api.prompt(session, "queue 1", delivery="queue", resume=False)
    await api.prompt(session, "queue 2", delivery="queue", resume=False)
    await api.prompt(session, "steer", delivery="steer")
    await api.wait(session)
    assert prompted(await api.history(session)) == [
        *("steer", "step"),
        *("queue 1", "step"),
        *("queue 2", "step"),
    ]
    assert len(provider.requests) == 3


@requirement("S68", "S69")
async def test_steers_overtake_the_queue_while_a_tool_runs(
    api: Api, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(calls(work(), hold=hold))
    session = await api.create()
    await api.prompt(session, "start")
    await provider.arrived(1)
    for words, delivery in (("q1", "queue"), ("q2", "queue"), ("s1", "steer"), ("s2", "steer")):
        await api.prompt(session, words, delivery=delivery)
    hold.set()
    await api.wait(session)
    assert prompted(await api.history(session)) == [
        *("start", "step"),
        *("s1", "s2", "step"),
        *("q1", "step"),
        *("q2", "step"),
    ]


@requirement("S69")
async def test_a_queued_prompt_waits_until_the_tools_of_the_one_before_are_answered(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(work()), text("first done"), calls(work()), text("second done"))
    session = await api.create()
    await api.prompt(session, "first", delivery="queue", resume=False)
    await api.prompt(session, "second", delivery="queue")
    await api.wait(session)
    assert prompted(await api.history(session)) == [
        *("first", "step", "step"),
        *("second", "step", "step"),
    ]


async def test_steers_admitted_together_join_in_admission_order(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    words = [f"word {number}" for number in range(20)]
    for word in words[:-1]:
        await api.prompt(session, word, resume=False)
    await api.prompt(session, words[-1])
    await api.wait(session)
    assert provider.requests[0].texts("user") == words
    assert len(provider.requests) == 1


@requirement("S68")
async def test_the_last_step_of_an_allowance_is_answered_without_tools(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(work()), text("this is how far I came"))
    session = await api.create(agent="brief")
    await api.ask(session, "work")
    first, last = provider.requests
    assert first.body["tools"]
    assert "tools" not in last.body
    assert "step limit" in last.messages[-1]["content"]


@requirement("S68")
async def test_a_tool_asked_for_in_the_last_step_is_not_run(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(calls(work()), calls(work("touch forbidden")), text("never asked"))
    session = await api.create(agent="brief")
    *_, last = await api.ask(session, "work")
    tool = last["content"][0]
    assert tool["state"]["status"] == "error"
    assert "disabled" in tool["state"]["error"]["message"]
    assert len(provider.requests) == 2


@requirement("S68")
async def test_new_input_gives_the_agent_its_whole_allowance_again(
    api: Api, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(calls(work(), hold=hold), calls(work()), text("enough"))
    session = await api.create(agent="brief")
    await api.prompt(session, "work")
    await provider.arrived(1)
    await api.prompt(session, "go on")
    hold.set()
    await api.wait(session)
    assert ["tools" in request.body for request in provider.requests] == [True, True, False]


@requirement("S86", "S91")
async def test_a_switch_counts_from_the_next_turn(api: Api, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.then(calls(work(), hold=hold), text("as the other"))
    session = await api.create()
    await api.prompt(session, "start")
    await provider.arrived(1)
    await api.post(f"/api/session/{session}/agent", {"agent": "terse"})
    await api.post(
        f"/api/session/{session}/model", {"model": {"providerID": "fake", "id": "other-model"}}
    )
    hold.set()
    await api.wait(session)
    first, second = provider.requests
    assert (first.body["model"], second.body["model"]) == ("fake-model", "other-model")
    assert "Be terse." not in first.messages[0]["content"]
    assert "Be terse." in second.messages[0]["content"]
    answers = [m for m in await api.messages(session) if m["type"] == "assistant"]
    assert [answer["agent"] for answer in answers] == ["build", "terse"]
    assert [answer["model"]["id"] for answer in answers] == ["fake-model", "other-model"]


@requirement("S91")
async def test_a_switch_is_part_of_the_transcript_and_the_session(api: Api) -> None:
    session = await api.create()
    await api.post(f"/api/session/{session}/agent", {"agent": "terse"})
    model = {"providerID": "fake", "id": "other-model"}
    await api.post(f"/api/session/{session}/model", {"model": model})
    shown = await api.session(session)
    assert shown["agent"] == "terse"
    assert shown["model"]["id"] == "other-model"
    switches = await api.messages(session)
    assert [message["type"] for message in switches] == ["agent-switched", "model-switched"]


@requirement("S91")
async def test_switching_to_what_is_already_selected_changes_nothing(api: Api) -> None:
    model = {"providerID": "fake", "id": "fake-model"}
    session = await api.create(agent="terse", model=model)
    await api.post(f"/api/session/{session}/agent", {"agent": "terse"})
    await api.post(f"/api/session/{session}/model", {"model": model})
    same = {**model, "variant": "default"}
    await api.post(f"/api/session/{session}/model", {"model": same})
    assert await api.facts(session) == []


async def test_a_variant_changes_the_request(api: Api, provider: ScriptedProvider) -> None:
    model = {"providerID": "fake", "id": "fake-model", "variant": "bold"}
    session = await api.create(model=model)
    await api.ask(session, "think hard")
    assert provider.requests[0].body["reasoning_effort"] == "high"
