"""Excluding a message or a result: the model is not sent it, and history keeps it."""

import asyncio
from typing import Final

from perdure.core.request.history_to_llm import EXCLUDED_MESSAGE, EXCLUDED_RESULT
from perdure.schema.codec import JsonObject, JsonValue
from tests.support import database_check
from tests.support.api import Answer, Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, Request, ScriptedProvider, calls, text

LONG: Final = "lorem ipsum " * 3_500


async def change(api: Api, session: str, message: str, body: JsonValue) -> Answer:
    return await api.call("PATCH", f"/api/session/{session}/message/{message}", body)


async def exclude(
    api: Api, session: str, message: str, call: str | None = None, *, excluded: bool = True
) -> JsonObject:
    body: JsonObject = {"excluded": excluded} | ({} if call is None else {"callID": call})
    answer = await change(api, session, message, body)
    assert answer.status == 200, answer.body
    return answer.json["data"]


def check_pairs(request: Request) -> None:
    wanted = [c["id"] for m in request.messages for c in m.get("tool_calls", ())]
    given = [m["tool_call_id"] for m in request.messages if m["role"] == "tool"]
    assert wanted == given


async def test_an_excluded_prompt_is_not_sent_until_it_is_restored(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await api.create()
    for said in ("one", "two", "three"):
        messages = await api.ask(session, said)
    before = provider.requests[-1]
    (second,) = [m for m in messages if m.get("text") == "two"]
    changed = await exclude(api, session, second["id"])
    excluded_at = changed["time"].pop("excluded")
    assert changed == second
    assert excluded_at >= second["time"]["created"]

    await api.ask(session, "four")
    sent = provider.requests[-1]
    assert sent.texts("user") == ["one", EXCLUDED_MESSAGE, "three", "four"]
    at = [m["content"] for m in before.messages].index("two")
    assert sent.messages[:at] == before.messages[:at]
    assert sent.messages[at + 1 : len(before.messages)] == before.messages[at + 1 :]

    assert await exclude(api, session, second["id"], excluded=False) == second
    await api.ask(session, "five")
    assert provider.requests[-1].messages[: len(before.messages)] == before.messages
    facts = await api.facts(session)
    assert (facts.count("message.excluded"), facts.count("message.restored")) == (1, 1)
    await database_check.check(folders.database)


async def test_of_parallel_calls_one_result_is_excluded_and_every_call_keeps_one(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    for name in "abc":
        (folders.project / f"{name}.txt").write_text(f"secret of {name}", encoding="utf-8")
    session = await api.create()
    provider.then(calls(*(Call("read", {"path": f"{name}.txt"}, name) for name in "abc")))
    messages = await api.ask(session, "read")
    (answer,) = [m for m in messages if m["type"] == "assistant" and len(m["content"]) == 3]
    changed = await exclude(api, session, answer["id"], "b")
    assert ["excluded" in part["time"] for part in changed["content"]] == [False, True, False]
    await api.ask(session, "go on")
    sent = provider.requests[-1]
    check_pairs(sent)
    results = sent.texts("tool")
    assert results[1] == EXCLUDED_RESULT
    assert ("secret of a" in results[0], "secret of c" in results[2]) == (True, True)
    await exclude(api, session, answer["id"], "b", excluded=False)
    await api.ask(session, "again")
    assert "secret of b" in provider.requests[-1].texts("tool")[1]


async def test_an_excluded_answer_goes_with_its_calls_and_results(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    (folders.project / "a.txt").write_text("swordfish", encoding="utf-8")
    session = await api.create()
    provider.then(calls(Call("read", {"path": "a.txt"}), Call("read", {"path": "b.txt"})))
    messages = await api.ask(session, "read")
    await exclude(api, session, messages[1]["id"])
    await api.ask(session, "go on")
    sent = provider.requests[-1]
    check_pairs(sent)
    assert b"swordfish" not in sent.raw
    assert sent.roles == ["system", "user", "assistant", "user"]


async def test_while_a_session_runs_an_exclusion_takes_effect_at_the_next_request(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    (folders.project / "a.txt").write_text("content", encoding="utf-8")
    session = await api.create()
    messages = await api.ask(session, "first")
    hold = asyncio.Event()
    provider.then(calls(Call("read", {"path": "a.txt"}), hold=hold))
    async with asyncio.timeout(10):
        await api.prompt(session, "second")
        await provider.arrived(2)
        await exclude(api, session, messages[0]["id"])
        hold.set()
        await api.wait(session)
    assert [request.texts("user") for request in provider.requests[1:]] == [
        ["first", "second"],
        [EXCLUDED_MESSAGE, "second"],
    ]
    check_pairs(provider.requests[-1])


async def test_an_exclusion_by_another_process_and_after_a_restart_is_the_same(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as here, running(folders) as elsewhere:
        session = await here.api.create()
        messages = await here.api.ask(session, "first")
        await exclude(elsewhere.api, session, messages[0]["id"])
        await here.api.ask(session, "second")
    before = provider.requests[-1]
    assert before.texts("user") == [EXCLUDED_MESSAGE, "second"]
    async with running(folders) as again:
        await again.api.ask(session, "third")
    assert provider.requests[-1].messages[: len(before.messages)] == before.messages


async def test_a_compaction_condenses_nothing_that_is_excluded(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await api.create()
    for said in ("the PASSWORD is swordfish", LONG, "go on"):
        messages = await api.ask(session, said)
    await exclude(api, session, messages[0]["id"])
    provider.then(text("the summary"))
    report = (await api.post(f"/api/session/{session}/compaction"))["data"]
    assert report["outcome"] == "summarised"
    await api.ask(session, "and now")
    assert not any(b"swordfish" in request.raw for request in provider.requests[3:])
    # An excluded checkpoint is not carried on either.
    checkpoint = next(m for m in await api.messages(session) if m["type"] == "compaction")
    await exclude(api, session, checkpoint["id"])
    await api.ask(session, "hm")
    assert provider.requests[-1].texts("user")[0] == EXCLUDED_MESSAGE
    await database_check.check(folders.database)


async def test_a_fork_and_a_revert_keep_what_is_excluded(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await api.create()
    for said in ("one", "two", "three"):
        messages = await api.ask(session, said)
    await exclude(api, session, messages[0]["id"])
    fork = (await api.post(f"/api/session/{session}/fork"))["data"]["id"]
    await api.ask(fork, "in the fork")
    assert provider.requests[-1].texts("user") == [EXCLUDED_MESSAGE, "two", "three", "in the fork"]
    last = messages[-2]["id"]
    for path, body in (("stage", {"messageID": messages[3]["id"]}), ("commit", None)):
        await api.post(f"/api/session/{session}/revert/{path}", body)
    gone = await change(api, session, last, {"excluded": True})
    assert (gone.status, gone.tag) == (404, "MessageNotFoundError")
    await api.ask(session, "other")
    assert provider.requests[-1].texts("user") == [EXCLUDED_MESSAGE, "two", "other"]
    await database_check.check(folders.database)


async def test_excluding_the_message_that_is_too_large_lets_the_session_go_on(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        messages = await api.ask(session, LONG)
        await exclude(api, session, messages[0]["id"])
        found = await api.get(f"/api/session/{session}/provider-context")
        await api.ask(session, "go on")
    assert found["data"]["window"]["tokens"] < len(LONG) // 4
    assert len(provider.requests[-1].raw) < len(provider.requests[0].raw) - len(LONG) // 2


async def test_repeating_it_records_nothing(api: Api, provider: ScriptedProvider) -> None:
    session = await api.create()
    messages = await api.ask(session, "hello")
    await exclude(api, session, messages[0]["id"], excluded=False)
    first = await exclude(api, session, messages[0]["id"])
    facts = await api.facts(session)
    assert await exclude(api, session, messages[0]["id"]) == first
    assert await api.facts(session) == facts


async def test_what_cannot_be_excluded_is_refused_and_nothing_changes(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session, other = await api.create(), await api.create()
    await api.ask(session, "hello")
    await api.post(f"/api/session/{session}/agent", {"agent": "plan"})
    (folders.project / "AGENTS.md").write_text("be brief", encoding="utf-8")
    messages = await api.ask(session, "again")
    by_type = {message["type"]: message["id"] for message in messages}
    facts = await api.facts(session)
    excluded = {"excluded": True}
    refused: list[tuple[str, str, JsonValue, int, str]] = [
        (session, "msg_unknown", excluded, 404, "MessageNotFoundError"),
        (other, by_type["user"], excluded, 404, "MessageNotFoundError"),
        ("ses_unknown", by_type["user"], excluded, 404, "SessionNotFoundError"),
        (session, by_type["system"], excluded, 400, "InvalidRequestError"),
        (session, by_type["agent-switched"], excluded, 400, "InvalidRequestError"),
        (session, by_type["user"], excluded | {"callID": "c"}, 400, "InvalidRequestError"),
        (session, by_type["assistant"], excluded | {"callID": "c"}, 400, "InvalidRequestError"),
        (session, by_type["user"], {}, 400, "InvalidRequestError"),
        (session, by_type["user"], {"excluded": "yes"}, 400, "InvalidRequestError"),
        (session, by_type["user"], None, 400, "InvalidRequestError"),
    ]
    for where, message, body, status, tag in refused:
        answer = await change(api, where, message, body)
        assert (answer.status, answer.tag) == (status, tag), (message, body)
    assert await api.facts(session) == facts
