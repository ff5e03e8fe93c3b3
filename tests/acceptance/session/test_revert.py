"""Going back in a conversation: what is staged shows, what is committed is gone for the model."""

import asyncio

import pytest

from perdure.schema.codec import JsonObject
from tests.support import database_check
from tests.support.api import Answer, Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Reply, Request, ScriptedProvider, text
from tests.support.server_process import server_process


@pytest.fixture(autouse=True)
def echoing(provider: ScriptedProvider) -> None:
    def echo(request: Request) -> Reply:
        return text("heard ", request.texts("user")[-1])

    provider.otherwise = echo


async def conversation(api: Api, *prompts: str) -> tuple[str, list[JsonObject]]:
    """A Session that was asked these, and its messages."""
    session = await api.create()
    for said in prompts:
        await api.ask(session, said)
    return session, await api.messages(session)


async def revert(api: Api, session: str, verb: str, body: JsonObject | None = None) -> Answer:
    return await api.call("POST", f"/api/session/{session}/revert/{verb}", body)


async def stage(api: Api, session: str, message: JsonObject) -> JsonObject:
    answer = await revert(api, session, "stage", {"messageID": message["id"]})
    assert answer.status == 200, answer.body
    return answer.json["data"]


async def commit(api: Api, session: str) -> None:
    answer = await revert(api, session, "commit")
    assert (answer.status, answer.body) == (204, b"")


# ---- staging ------------------------------------------------------------------------------------


async def test_a_staged_revert_shows_on_the_session_and_hides_nothing(api: Api) -> None:
    session, messages = await conversation(api, "one", "two")
    before = await api.session(session)
    assert await stage(api, session, messages[1]) == {"messageID": messages[1]["id"]}
    after = await api.session(session)
    assert after["revert"] == {"messageID": messages[1]["id"]}
    assert after["time"]["updated"] >= before["time"]["updated"]
    assert await api.messages(session) == messages
    assert (await api.history(session))[-1]["type"] == "session.next.revert.staged"


@pytest.mark.parametrize("files", [True, False, None])
async def test_files_stay_as_they_are_whether_asked_for_or_not(
    api: Api, folders: ProjectFolders, *, files: bool | None
) -> None:
    session, messages = await conversation(api, "one")
    (folders.project / "kept.txt").write_text("now")
    body = {"messageID": messages[0]["id"], "files": files}
    answer = await revert(api, session, "stage", body)
    assert answer.json == {"data": {"messageID": messages[0]["id"]}}
    assert (folders.project / "kept.txt").read_text() == "now"


async def test_staging_again_moves_the_boundary_in_both_directions(api: Api) -> None:
    session, messages = await conversation(api, "one", "two")
    for message in (messages[2], messages[0], messages[1]):
        await stage(api, session, message)
        assert (await api.session(session))["revert"] == {"messageID": message["id"]}
    await commit(api, session)
    assert await api.messages(session) == messages[:2]
    assert (await api.facts(session))[-4:] == ["revert.staged"] * 3 + ["revert.committed"]


async def test_a_cleared_revert_leaves_everything_in_place(
    api: Api, provider: ScriptedProvider
) -> None:
    session, messages = await conversation(api, "one", "two")
    await stage(api, session, messages[0])
    assert (await revert(api, session, "clear")).status == 204
    assert "revert" not in await api.session(session)
    assert await api.messages(session) == messages
    await api.ask(session, "three")
    assert provider.requests[-1].texts("user") == ["one", "two", "three"]
    assert "revert.committed" not in await api.facts(session)


@pytest.mark.parametrize("verb", ["clear", "commit"])
async def test_without_a_staged_revert_there_is_nothing_to_end(api: Api, verb: str) -> None:
    session, messages = await conversation(api, "one")
    before = await api.history(session)
    for _ in range(2):
        answer = await revert(api, session, verb)
        assert (answer.status, answer.body) == (204, b"")
    assert await api.history(session) == before
    assert await api.messages(session) == messages


@pytest.mark.parametrize(("verb", "heard"), [("clear", ["one", "two"]), ("commit", ["one"])])
async def test_what_is_pending_waits_until_it_is_decided_what_stays(
    api: Api, provider: ScriptedProvider, verb: str, heard: list[str]
) -> None:
    session, messages = await conversation(api, "one")
    pending = await api.prompt(session, "two", resume=False)
    await stage(api, session, messages[1])
    # The same prompt again is no new one, so it ends nothing; it only asks to be run.
    assert await api.prompt(session, "two", id=pending["id"]) == pending
    await api.wait(session)
    assert len(provider.requests) == 1
    assert await api.messages(session) == messages
    assert (await revert(api, session, verb)).status == 204
    await api.wait(session)
    assert provider.requests[-1].texts("user") == heard


# ---- committing ---------------------------------------------------------------------------------


async def test_what_was_reverted_is_never_sent_to_the_model_again(
    api: Api, provider: ScriptedProvider
) -> None:
    session, messages = await conversation(api, "one", "two", "three")
    await stage(api, session, messages[1])
    await commit(api, session)
    assert await api.messages(session) == messages[:2]
    assert "revert" not in await api.session(session)
    for said, sent in (("four", ["one", "four"]), ("five", ["one", "four", "five"])):
        await api.ask(session, said)
        assert provider.requests[-1].texts("user") == sent
        assert provider.requests[-1].texts("assistant") == [f"heard {said}" for said in sent[:-1]]
    assert [m.get("text") for m in await api.messages(session) if m["type"] == "user"] == sent


async def test_going_back_to_a_prompt_keeps_it_and_takes_its_answer_away(
    api: Api, provider: ScriptedProvider
) -> None:
    session, messages = await conversation(api, "one", "two")
    await stage(api, session, messages[2])
    await commit(api, session)
    assert await api.messages(session) == messages[:3]
    await api.ask(session, "or rather three")
    sent = provider.requests[-1]
    assert "two" in str(sent.texts("user"))
    assert "or rather three" in str(sent.texts("user"))
    assert sent.texts("assistant") == ["heard one"]


async def test_the_durable_log_keeps_what_was_reverted(api: Api, folders: ProjectFolders) -> None:
    session, messages = await conversation(api, "one", "two")
    before = await api.history(session)
    await stage(api, session, messages[1])
    await commit(api, session)
    log = await api.history(session)
    assert log[: len(before)] == before
    assert log[-1]["data"]["messageID"] == messages[1]["id"]
    assert [event["durable"]["seq"] for event in log] == list(range(1, len(log) + 1))
    await api.ask(session, "three")
    await database_check.check(folders.database)


async def test_prompts_that_waited_behind_the_boundary_are_gone(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as before:
        session, messages = await conversation(before.api, "one")
        waiting = await before.api.prompt(session, "never run", resume=False, delivery="queue")
        await stage(before.api, session, messages[1])
        await commit(before.api, session)
        kept = {row[0] for row in database_check.dump(folders.database)["session_input"]}
        assert waiting["id"] not in kept
        assert messages[0]["id"] in kept
    async with running(folders) as after:
        await after.api.ask(session, "two")
        assert provider.requests[-1].texts("user") == ["one", "two"]
    assert provider.requests_with("never run") == 0
    await database_check.check(folders.database)


async def test_context_is_admitted_anew_after_a_commit(api: Api, folders: ProjectFolders) -> None:
    def epochs() -> list[int]:
        rows = database_check.dump(folders.database)["session_context_epoch"]
        return [int(str(row[2])) for row in rows if row[0] == session]

    session, messages = await conversation(api, "one", "two")
    (first,) = epochs()
    await stage(api, session, messages[1])
    assert epochs() == [first]
    await commit(api, session)
    assert epochs() == []
    committed = (await api.history(session))[-1]["durable"]["seq"]
    await api.ask(session, "three")
    (renewed,) = epochs()
    assert renewed >= committed


# ---- a prompt while a revert is staged ----------------------------------------------------------


@pytest.mark.parametrize("resume", [True, False])
async def test_a_new_prompt_commits_the_revert_in_the_same_append(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders, *, resume: bool
) -> None:
    session, messages = await conversation(api, "one", "two")
    await stage(api, session, messages[1])
    last = (await api.history(session))[-1]["durable"]["seq"]
    receipt = await api.prompt(session, "instead", resume=resume)
    await api.wait(session)
    assert (await api.facts(session, after=last))[:2] == ["revert.committed", "prompt.admitted"]
    assert receipt["admittedSeq"] == last + 2
    assert "revert" not in await api.session(session)
    assert (await api.messages(session))[:2] == messages[:2]
    if not resume:
        await api.ask(session, "go")
    assert "two" not in provider.requests[-1].texts("user")
    assert "instead" in str(provider.requests[-1].texts("user"))
    await database_check.check(folders.database)


async def test_a_prompt_that_was_admitted_before_commits_nothing_when_sent_again(api: Api) -> None:
    session, messages = await conversation(api, "one")
    first = await api.prompt(session, "two", id="msg_two")
    await api.wait(session)
    await stage(api, session, messages[1])
    again = await api.prompt(session, "two", id="msg_two", resume=False)
    assert again["admittedSeq"] == first["admittedSeq"]
    assert (await api.session(session))["revert"] == {"messageID": messages[1]["id"]}
    body = {"prompt": {"text": "other"}, "id": "msg_two"}
    clash = await api.call("POST", f"/api/session/{session}/prompt", body)
    assert (clash.status, clash.tag) == (409, "ConflictError")
    assert "revert.committed" not in await api.facts(session)


async def test_prompts_and_reverts_at_once_lose_no_admission(
    api: Api, folders: ProjectFolders
) -> None:
    session, messages = await conversation(api, "one")
    boundary = {"messageID": messages[0]["id"]}
    answers = await asyncio.gather(
        *(
            call
            for number in range(10)
            for call in (
                revert(api, session, "stage", boundary),
                api.call(
                    "POST",
                    f"/api/session/{session}/prompt",
                    {"prompt": {"text": f"p{number}"}, "resume": False},
                ),
                revert(api, session, ("commit", "clear")[number % 2]),
            )
        )
    )
    # One revert at a time: another one meanwhile is told that the Session is busy.
    assert {answer.status for answer in answers[1::3]} == {200}
    assert {answer.status for answer in answers} <= {200, 204, 409}
    is_staged = False
    for fact in await api.facts(session):
        assert fact != "prompt.admitted" or not is_staged
        assert is_staged or fact not in {"revert.cleared", "revert.committed"}
        if fact.startswith("revert."):
            is_staged = fact == "revert.staged"
    await database_check.check(folders.database)


async def test_of_many_commits_at_once_one_counts(api: Api) -> None:
    session, messages = await conversation(api, "one", "two")
    await stage(api, session, messages[1])
    answers = await asyncio.gather(*(revert(api, session, "commit") for _ in range(20)))
    assert {answer.status for answer in answers} == {204}
    assert (await api.facts(session)).count("revert.committed") == 1


# ---- refusals -----------------------------------------------------------------------------------


async def test_only_a_message_of_the_session_can_be_gone_back_to(api: Api) -> None:
    session, _ = await conversation(api, "one")
    _, foreign = await conversation(api, "elsewhere")
    pending = await api.prompt(session, "not yet", resume=False)
    before = await api.history(session)
    for message_id in ("msg_never", foreign[0]["id"], pending["id"]):
        answer = await revert(api, session, "stage", {"messageID": message_id})
        assert (answer.status, answer.tag) == (404, "MessageNotFoundError")
        assert (answer.json["sessionID"], answer.json["messageID"]) == (session, message_id)
    assert await api.history(session) == before
    assert "revert" not in await api.session(session)


@pytest.mark.parametrize("verb", ["stage", "clear", "commit"])
async def test_an_unknown_session_has_nothing_to_revert(api: Api, verb: str) -> None:
    answer = await revert(api, "ses_never", verb, {"messageID": "msg_x"})
    assert (answer.status, answer.tag) == (404, "SessionNotFoundError")


async def test_a_message_that_was_reverted_cannot_be_gone_back_to(api: Api) -> None:
    session, messages = await conversation(api, "one", "two")
    await stage(api, session, messages[1])
    await commit(api, session)
    answer = await revert(api, session, "stage", {"messageID": messages[3]["id"]})
    assert (answer.status, answer.tag) == (404, "MessageNotFoundError")


async def test_a_running_session_refuses_to_go_back(api: Api, provider: ScriptedProvider) -> None:
    session, messages = await conversation(api, "one")
    held = asyncio.Event()
    provider.then(text("busy", hold=held))
    await api.prompt(session, "two")
    await provider.arrived(2)
    body = {"messageID": messages[0]["id"]}
    refused = await revert(api, session, "stage", body)
    assert (refused.status, refused.tag) == (409, "ConflictError")
    assert refused.json["resource"] == session
    assert "revert" not in await api.session(session)
    for verb in ("clear", "commit"):
        assert (await revert(api, session, verb)).status == 204
    held.set()
    await api.wait(session)
    assert "revert.staged" not in await api.facts(session)
    assert (await revert(api, session, "stage", body)).status == 200


# ---- restarts and other processes ---------------------------------------------------------------


async def test_a_staged_revert_outlives_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as before:
        session, messages = await conversation(before.api, "one", "two")
        await stage(before.api, session, messages[1])
    async with running(folders) as after:
        assert (await after.api.session(session))["revert"] == {"messageID": messages[1]["id"]}
        await after.api.ask(session, "three")
        assert provider.requests[-1].texts("user") == ["one", "three"]


async def test_a_commit_by_another_server_counts_for_the_one_that_runs_the_session(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with server_process(folders, "a") as a, server_process(folders, "b") as b:
        session, messages = await conversation(a.api, "one", "two", "three")
        await stage(b.api, session, messages[1])
        await commit(b.api, session)
        await a.api.ask(session, "four")
        assert provider.requests[-1].texts("user") == ["one", "four"]
    assert "Traceback" not in a.log + b.log
    await database_check.check(folders.database)


async def test_followers_see_a_revert_as_it_happens(instance: Instance) -> None:
    api = instance.api
    session, messages = await conversation(api, "one", "two")
    last = (await api.history(session))[-1]["durable"]["seq"]
    async with api.events(session, after=last) as stream:
        await stage(api, session, messages[1])
        await commit(api, session)
        told = await stream.until("revert.committed")
    assert [event["durable"]["seq"] for event in told] == [last + 1, last + 2]
    assert told[0]["data"]["revert"] == {"messageID": messages[1]["id"]}
