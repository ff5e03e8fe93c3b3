"""Compacting by hand: the model sees a checkpoint, people still see everything."""

import asyncio

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Answer, Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Reply, ScriptedProvider, cut, refusal, text

LONG = "lorem ipsum " * 3_500
"""Larger than what is kept as it is."""


async def compact(api: Api, session: str) -> Answer:
    return await api.call("POST", f"/api/session/{session}/compact")


async def talked(api: Api) -> str:
    """A Session with one long exchange and one short one."""
    session = await api.create()
    await api.ask(session, f"first {LONG}")
    await api.ask(session, "second")
    return session


async def context(api: Api, session: str) -> list[JsonObject]:
    return (await api.get(f"/api/session/{session}/context"))["data"]


@requirement("S36", "S58", "S2", "S6")
async def test_after_compaction_the_model_sees_the_checkpoint_and_the_new_prompt(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await talked(api)
    before = await api.messages(session)
    provider.then(text("the ", "summary"))
    answer = await compact(api, session)
    assert (answer.status, answer.body) == (204, b"")

    asked = provider.requests[2]
    assert (asked.roles, "tools" in asked.body) == (["user"], False)
    assert f"[User]: first {LONG}" in asked.texts("user")[0]
    assert "[User]: second" not in asked.texts("user")[0]
    assert asked.headers["x-session-id"] == session

    after = await api.ask(session, "third")
    assert after[: len(before)] == before
    checkpoint = after[len(before)]
    assert (checkpoint["reason"], checkpoint["summary"]) == ("manual", "the summary")
    assert checkpoint["recent"] == "[Assistant]: ok\n\n[User]: second\n\n[Assistant]: ok"

    sent = provider.requests[3]
    assert sent.roles == ["system", "user", "user"]
    summary, prompt = sent.texts("user")
    assert "<summary>\nthe summary\n</summary>" in summary
    assert LONG not in summary
    assert prompt == "third"
    shown = await context(api, session)
    assert shown[0] == checkpoint
    assert [message["type"] for message in shown] == ["compaction", "user", "assistant"]
    told = await api.get(f"/api/session/{session}/provider-context")
    log = await api.history(session)
    ended = next(event for event in log if event["type"] == "session.next.compaction.ended")
    assert told["data"]["baselineSeq"] == ended["durable"]["seq"]
    await database_check.check(folders.database)


@requirement("S36")
async def test_compacting_again_carries_the_summary_forward(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await talked(api)
    provider.then(text("one"))
    await compact(api, session)
    provider.then(text("words " * 8_000))
    await api.ask(session, "third")
    provider.then(text("two"))
    assert (await compact(api, session)).status == 204
    asked = provider.requests[-1].texts("user")[0]
    assert "<previous-summary>\none\n</previous-summary>" in asked
    assert "[User]: second" in asked
    assert LONG not in asked
    types = [message["type"] for message in await api.messages(session)]
    assert types.count("compaction") == 2
    assert [message["type"] for message in await context(api, session)] == ["compaction"]
    await database_check.check(folders.database)


async def test_a_conversation_that_is_short_is_left_as_it_is(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    assert (await compact(api, session)).status == 204
    await api.ask(session, "hello")
    facts = await api.facts(session)
    assert (await compact(api, session)).status == 204
    assert await api.facts(session) == [*facts, "compaction.reported"]
    reported = (await api.history(session))[-1]["data"]
    assert (reported["outcome"], reported["reason"]) == ("nothing", "manual")
    assert "newest 8,000" in reported["note"]
    assert len(provider.requests) == 1


async def test_a_checkpoint_that_would_be_larger_is_not_made(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talked(api)
    provider.then(text("one"))
    await compact(api, session)
    await api.ask(session, "third")
    before = await context(api, session)
    asked = len(provider.requests)
    for _ in range(2):
        report = (await api.call("POST", f"/api/session/{session}/compaction", {})).json["data"]
        assert report["outcome"] == "nothing"
        assert report["tokensAfter"] == report["tokensBefore"]
        assert "would not be smaller" in report["reason"]
    assert await context(api, session) == before
    assert len(provider.requests) == asked


async def test_a_summary_that_is_longer_than_what_it_replaces_is_not_used(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    provider.then(text("words " * 300))
    await api.ask(session, "first")
    provider.then(text("x" * 31_000))
    await api.ask(session, "second")
    before = await context(api, session)
    provider.then(text("a long summary " * 800))
    report = (await api.call("POST", f"/api/session/{session}/compaction", {})).json["data"]
    assert report["outcome"] == "nothing"
    assert "would not be smaller" in report["reason"]
    assert await context(api, session) == before


async def test_compacting_twice_at_once_compacts_once(api: Api, provider: ScriptedProvider) -> None:
    session = await talked(api)
    answers = await asyncio.gather(*(compact(api, session) for _ in range(5)))
    assert [answer.status for answer in answers] == [204] * 5
    assert (await api.facts(session)).count("compaction.started") == 1


async def test_a_compaction_that_fails_leaves_everything_as_it_was(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await talked(api)
    before, shown = await api.messages(session), await context(api, session)
    failures: list[tuple[Reply, str]] = [
        (refusal(400, {"error": {"message": "no such thing"}}), "no such thing"),
        (text(" \n"), "without a summary"),
        (cut("half of a summ"), ""),
    ]
    for reply, reason in failures:
        provider.then(reply)
        answer = await compact(api, session)
        assert (answer.status, answer.tag) == (503, "ServiceUnavailableError")
        assert answer.json["service"] == "session.compact"
        assert reason in answer.json["message"]
    assert (await api.messages(session), await context(api, session)) == (before, shown)
    assert "compaction.ended" not in await api.facts(session)
    await api.ask(session, "third")
    assert f"first {LONG}" in provider.requests[-1].texts("user")
    await database_check.check(folders.database)


async def test_a_model_that_cannot_be_used_or_read_it_all_is_said_so_before_anything_happens(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talked(api)
    facts = await api.facts(session)
    gone = {"model": {"providerID": "fake", "id": "no-such-model"}}
    await api.post(f"/api/session/{session}/model", gone)
    answer = await compact(api, session)
    assert (answer.status, answer.tag) == (503, "ServiceUnavailableError")
    assert "no-such-model" in answer.json["message"]
    assert await api.facts(session) == [*facts, "model.switched", "compaction.reported"]
    assert (await api.history(session))[-1]["data"]["outcome"] == "failed"
    assert len(provider.requests) == 2


@requirement("S139")
async def test_interrupting_a_compaction_leaves_the_old_boundary(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await talked(api)
    shown = await context(api, session)
    provider.then(text("half a summary", hold=asyncio.Event()))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        compacting = group.create_task(compact(api, session))
        await provider.arrived(3)
        assert (await api.get("/api/session/active"))["data"] == {session: {"type": "running"}}
        await api.post(f"/api/session/{session}/interrupt")
        answer = await compacting
    assert (answer.status, answer.json["message"]) == (503, "Compaction was interrupted")
    assert await context(api, session) == shown
    assert (await api.facts(session))[-2:] == ["compaction.started", "compaction.reported"]
    assert (await api.history(session))[-1]["data"]["note"] == "Compaction was interrupted"
    provider.then(text("whole"))
    assert (await compact(api, session)).status == 204
    assert (await context(api, session))[0]["summary"] == "whole"
    await database_check.check(folders.database)


async def test_a_prompt_during_a_compaction_is_answered_after_it(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talked(api)
    hold = asyncio.Event()
    provider.then(text("summary", hold=hold))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        compacting = group.create_task(compact(api, session))
        await provider.arrived(3)
        await api.prompt(session, "meanwhile")
        hold.set()
        assert (await compacting).status == 204
    await api.wait(session)
    facts = await api.facts(session)
    assert facts.index("compaction.ended") < len(facts) - 1 - facts[::-1].index("prompted")
    said = "\n".join(map(str, provider.requests[3].texts("user")))
    assert "summary" in said
    assert "meanwhile" in said


async def test_a_compaction_waits_for_the_answer_in_progress(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talked(api)
    hold = asyncio.Event()
    provider.then(text("slow", hold=hold))
    await api.prompt(session, "third")
    await provider.arrived(3)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        compacting = group.create_task(compact(api, session))
        await api.session(session)
        assert "compaction.started" not in await api.facts(session)
        hold.set()
        assert (await compacting).status == 204
    assert (await context(api, session))[0]["recent"].endswith("[Assistant]: slow")


async def test_whoever_listens_sees_the_summary_arrive(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talked(api)
    provider.then(text("a ", "b"))
    async with api.stream("/api/event") as stream:
        await stream.until("server.connected")
        assert (await compact(api, session)).status == 204
        seen = await stream.until("compaction.ended")
    deltas = [e["data"] for e in seen if e["type"] == "session.next.compaction.delta"]
    assert "".join(delta["text"] for delta in deltas) == "a b"
    assert {delta["messageID"] for delta in deltas} == {seen[-1]["data"]["messageID"]}


async def test_a_conversation_too_long_for_its_model_is_condensed_in_parts(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"small": {"limit": {"context": 9_000, "output": 4_000}}})
    async with running(folders) as instance:
        session = await talked(instance.api)
        model = {"model": {"providerID": "fake", "id": "small"}}
        await instance.api.post(f"/api/session/{session}/model", model)
        provider.then(text("one"), text("two"))
        provider.otherwise = lambda request: text("the rest")
        async with instance.api.stream("/api/event") as stream:
            await stream.until("server.connected")
            assert (await compact(instance.api, session)).status == 204
            seen = await stream.until("compaction.ended")
        (checkpoint,) = await context(instance.api, session)
    parts = [request.texts("user")[0] for request in provider.requests[2:]]
    assert len(parts) > 2
    assert all(len(part) < 9_000 * 4 for part in parts)
    assert "previous-summary" not in parts[0]
    assert "<previous-summary>\none\n</previous-summary>" in parts[1]
    assert "<previous-summary>\ntwo\n</previous-summary>" in parts[2]
    assert checkpoint["summary"] == "the rest"
    # Only the last version is shown as it comes.
    deltas = [e["data"] for e in seen if e["type"] == "session.next.compaction.delta"]
    assert "".join(delta["text"] for delta in deltas) == "the rest"


async def test_a_person_may_say_what_the_summary_should_heed(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talked(api)
    wish = {"instruction": "keep every port number"}
    assert (await api.call("POST", f"/api/session/{session}/compact", wish)).status == 204
    asked = provider.requests[-1].texts("user")[0]
    assert "<instruction>\nkeep every port number\n</instruction>" in asked
    log = await api.history(session)
    (started,) = [e for e in log if e["type"] == "session.next.compaction.started"]
    assert started["data"]["instruction"] == "keep every port number"


@pytest.mark.parametrize(
    "body", [{"instruction": 5}, {"instruction": "x" * 20_000}, ["instruction"]]
)
async def test_an_instruction_that_is_none_is_refused_and_nothing_happens(
    api: Api, provider: ScriptedProvider, body: JsonValue
) -> None:
    session = await talked(api)
    answer = await api.call("POST", f"/api/session/{session}/compact", body)
    assert (answer.status, answer.tag) == (400, "InvalidRequestError")
    assert "compaction.started" not in await api.facts(session)


async def test_the_agent_for_compaction_may_have_its_own_model_and_words(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    agent = {"model": "fake/cheap", "system": "Name every file."}
    configure(folders, {"cheap": {}}, agents={"compaction": agent})
    async with running(folders) as instance:
        session = await talked(instance.api)
        assert (await compact(instance.api, session)).status == 204
        await instance.api.ask(session, "third")
    asked, after = provider.requests[2:]
    assert asked.body["model"] == "cheap"
    assert "<guidance>\nName every file.\n</guidance>" in asked.texts("user")[0]
    assert after.body["model"] == "fake-model"


async def test_a_model_for_compaction_that_is_not_there_is_said_so(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {}, agents={"compaction": {"model": "fake/gone"}})
    async with running(folders) as instance:
        session = await talked(instance.api)
        answer = await compact(instance.api, session)
        assert (answer.status, answer.tag) == (503, "ServiceUnavailableError")
        assert "gone" in answer.json["message"]
    assert len(provider.requests) == 2


async def test_while_a_revert_is_staged_nothing_is_condensed(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await talked(api)
    first = (await api.messages(session))[0]["id"]
    await api.post(f"/api/session/{session}/revert/stage", {"messageID": first})
    answer = await compact(api, session)
    assert (answer.status, answer.tag) == (503, "ServiceUnavailableError")
    assert "commit or clear it first" in answer.json["message"]
    await api.post(f"/api/session/{session}/revert/clear")
    assert (await compact(api, session)).status == 204
    assert (await api.facts(session)).count("compaction.started") == 1


async def test_a_revert_elsewhere_is_not_undone_by_a_compaction_that_began_before(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as here, running(folders) as elsewhere:
        session = await talked(here.api)
        first = (await here.api.messages(session))[0]["id"]
        hold = asyncio.Event()
        provider.then(text("of what was said", hold=hold))
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            compacting = group.create_task(compact(here.api, session))
            await provider.arrived(3)
            revert = f"/api/session/{session}/revert"
            await elsewhere.api.post(f"{revert}/stage", {"messageID": first})
            await elsewhere.api.post(f"{revert}/commit")
            hold.set()
            answer = await compacting
        assert (answer.status, answer.tag) == (503, "ServiceUnavailableError")
        assert "reverted" in answer.json["message"]
        assert "compaction.ended" not in await here.api.facts(session)
    await database_check.check(folders.database)


def configure(folders: ProjectFolders, models: JsonObject, **settings: object) -> None:
    path = folders.project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    configuration["providers"]["fake"]["models"] |= models
    path.write_bytes(codec.encode({**configuration, **settings}))


@requirement("S192")
async def test_compacting_an_unknown_session_is_refused(api: Api) -> None:
    answer = await compact(api, "ses_unknown")
    assert (answer.status, answer.tag) == (404, "SessionNotFoundError")
