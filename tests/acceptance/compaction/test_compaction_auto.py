"""Room is made before a turn that would not fit, and once after one that did not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from perdure.core.compaction.outcome import STILL_TOO_LARGE
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import (
    Call,
    Reply,
    Request,
    ScriptedProvider,
    calls,
    refusal,
    text,
)
from tests.support.unreadable import link_to_itself, unreadable

OVERFLOW = refusal(400, {"error": {"message": "maximum context length is 9 tokens", "code": "x"}})
PARAGRAPH = "lorem ipsum " * 1_000
"""About 3,000 tokens."""


def is_summary(request: Request) -> bool:
    return "tools" not in request.body and request.roles == ["user"]


def configure(folders: ProjectFolders, limit: JsonObject | None, **settings: object) -> None:
    """Sessions use a model with this limit from now on."""
    path = folders.project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    model: JsonObject = {} if limit is None else {"limit": limit}
    configuration["providers"]["fake"]["models"]["small"] = model
    path.write_bytes(codec.encode({**configuration, "model": "fake/small", **settings}))


@asynccontextmanager
async def small(folders: ProjectFolders, **settings: object) -> AsyncGenerator[Api]:
    configure(folders, {"context": 32_000, "output": 4_000}, **settings)
    async with running(folders) as instance:
        yield instance.api


def summaries(provider: ScriptedProvider) -> list[Request]:
    return [request for request in provider.requests if is_summary(request)]


async def checkpoints(api: Api, session: str) -> list[JsonObject]:
    return [m for m in await api.messages(session) if m["type"] == "compaction"]


@requirement("S36", "S58", "S6")
async def test_a_long_session_goes_on_for_ever_and_nobody_has_to_do_anything(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.otherwise = lambda r: text("the summary" if is_summary(r) else "ok")
    async with small(folders) as api:
        session = await api.create()
        for number in range(40):
            await api.ask(session, f"prompt {number} {PARAGRAPH}")
        messages = await api.messages(session)
        facts = await api.facts(session)
    assert [m["type"] for m in messages].count("user") == 40
    assert all("error" not in m for m in messages)
    assert 2 <= facts.count("compaction.ended") <= 15
    assert facts.count("compaction.started") == facts.count("compaction.ended")
    # As the contract has it: what was asked is promoted, then room is made, then it is answered.
    # What a summary has cost stands between, and is ours.
    assert facts.count("spent") >= facts.count("compaction.ended")
    published = [fact for fact in facts if fact != "spent"]
    at = published.index("compaction.started")
    assert published[at - 1 : at + 3] == [
        "prompted", "compaction.started", "compaction.ended", "step.started",
    ]  # fmt: skip
    assert all(len(r.raw) < 32_000 * 4 for r in provider.requests)
    await database_check.check(folders.database)


async def test_the_prompt_that_needed_the_room_is_what_gets_answered(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.otherwise = lambda r: text("the summary" if is_summary(r) else "ok")
    async with small(folders) as api:
        session = await api.create()
        await api.ask(session, "ALWAYS use tabs")
        while not summaries(provider):
            await api.ask(session, f"read this {PARAGRAPH}")
        (checkpoint,) = await checkpoints(api, session)
    sent = provider.requests[-1].texts("user")[-1]
    assert "[User]: ALWAYS use tabs" in sent
    assert "<summary>\nthe summary\n</summary>" in sent
    assert f"[User]: read this {PARAGRAPH}".strip() in sent
    assert (checkpoint["reason"], checkpoint["summary"]) == ("auto", "the summary")
    assert checkpoint["directives"][0] == "ALWAYS use tabs"


async def test_room_is_made_between_tool_calls_and_no_call_loses_its_result(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    for number in range(20):
        lines = f"line of file {number}\n" * 600
        (folders.project / f"{number}.txt").write_text(lines, encoding="utf-8")
    unread = iter(range(20))

    def answer(request: Request) -> Reply:
        if is_summary(request):
            return text("the summary")
        number = next(unread, None)
        return text("done") if number is None else calls(Call("read", {"path": f"{number}.txt"}))

    provider.otherwise = answer
    async with small(folders) as api:
        session = await api.create()
        await api.ask(session, "read it again and again")
        facts = await api.facts(session)
    assert "step.failed" not in facts
    assert "tool.pruned" in facts
    assert all("read it again and again" in request.texts("user") for request in provider.requests)
    for request in provider.requests:
        wanted = [c["id"] for m in request.messages for c in m.get("tool_calls", ())]
        given = [m["tool_call_id"] for m in request.messages if m["role"] == "tool"]
        assert wanted == given


async def test_open_items_are_still_told_after_a_compaction(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    todos = [
        {"content": "write the parser", "status": "in_progress", "priority": "high"},
        {"content": "old news", "status": "completed", "priority": "low"},
    ]
    async with small(folders) as api:
        session = await api.create()
        provider.then(calls(Call("todowrite", {"todos": todos})), text("noted"))
        await api.ask(session, "plan")
        provider.otherwise = lambda r: text("the summary" if is_summary(r) else "ok")
        while not summaries(provider):
            await api.ask(session, PARAGRAPH)
        (checkpoint,) = await checkpoints(api, session)
    assert [todo["content"] for todo in checkpoint["todos"]] == ["write the parser"]
    sent = provider.requests[-1].texts("user")[-1]
    assert "<open-todos>\n- [in_progress] write the parser\n</open-todos>" in sent


@pytest.mark.parametrize(
    "reply",
    [
        refusal(400, {"error": {"message": "cannot"}}),
        OVERFLOW,
        text(" "),
        text("echo " * 30_000),
        text("x" * 1_000_000),
    ],
    ids=["fails", "overflows", "says nothing", "echoes", "never stops"],
)
async def test_a_model_that_cannot_sum_up_does_not_stop_the_session(
    folders: ProjectFolders, provider: ScriptedProvider, reply: Reply
) -> None:
    provider.otherwise = lambda r: reply if is_summary(r) else text("ok")
    async with small(folders) as api:
        session = await api.create()
        await api.ask(session, "NEVER touch main.c")
        for _ in range(12):
            await api.ask(session, PARAGRAPH)
        facts, messages = await api.facts(session), await api.messages(session)
        found = await checkpoints(api, session)
    assert all("error" not in message for message in messages)
    assert facts.count("compaction.started") == facts.count("compaction.ended") == len(found)
    assert 1 <= len(found) <= 6
    assert "cut off here without a summary" in found[0]["summary"]
    assert "NEVER touch main.c" in found[-1]["directives"]
    await database_check.check(folders.database)


UPSTREAM = {"error": {"message": "Prompt exceeds max length", "code": "1261"}}
WRAPPED: JsonObject = {
    "error": {
        "message": "Provider returned error",
        "code": 400,
        "metadata": {"raw": codec.encode(UPSTREAM).decode(), "provider_name": "Z.AI"},
    }
}
OVERSIZE: JsonObject = {
    "error": {
        "message": "Request too large for model `m` on tokens per minute (TPM): Limit 6000,"
        " Requested 7071. Need more tokens? Upgrade at https://example.com/settings/billing",
        "type": "tokens",
        "code": "rate_limit_exceeded",
    }
}


@pytest.mark.parametrize(
    "overflow",
    [
        OVERFLOW,
        refusal(400, WRAPPED),
        refusal(502, WRAPPED),
        refusal(413, OVERSIZE),
        refusal(429, OVERSIZE),
        refusal(202, WRAPPED, content_type="application/json"),
        Reply(pieces=(b"data: " + codec.encode(WRAPPED) + b"\n\n",)),
    ],
    ids=["plain", "wrapped", "as-502", "oversize", "as-429", "as-202", "in-the-stream"],
)
async def test_a_request_that_overflows_is_sent_again_once_with_less(
    folders: ProjectFolders, provider: ScriptedProvider, overflow: Reply
) -> None:
    configure(folders, None)
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        for _ in range(5):
            await api.ask(session, PARAGRAPH)
        before = len(provider.requests)
        provider.then(overflow)
        provider.otherwise = lambda r: text("the summary" if is_summary(r) else "made it")
        messages = await api.ask(session, "go on")
        facts = await api.facts(session)
    assert messages[-1]["content"][0]["text"] == "made it"
    assert facts.count("step.failed") == 0
    assert facts.count("compaction.ended") == 1
    refused, *asked, again = provider.requests[before:]
    assert not is_summary(refused)
    assert asked
    assert all(map(is_summary, asked))
    assert len(again.raw) < len(refused.raw) * 0.8
    assert "go on" in again.texts("user")[-1]


async def test_a_second_overflow_is_a_failed_step_that_says_what_to_do(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.otherwise = lambda r: text("the summary" if is_summary(r) else "ok")
    async with small(folders, compaction={"auto": False}) as api:
        session = await api.create()
        for _ in range(3):
            await api.ask(session, PARAGRAPH)
        provider.otherwise = lambda r: text("the summary") if is_summary(r) else OVERFLOW
        before = len(provider.requests)
        messages = await api.ask(session, "go on")
        asked = [is_summary(request) for request in provider.requests[before:]]
        assert asked.count(False) == 2
        assert STILL_TOO_LARGE in messages[-1]["error"]["message"]
        assert "maximum context length" in messages[-1]["error"]["message"]
        assert messages[-1]["model"]["id"] == "small"
        # Nothing spins, and the next prompt is a new try.
        provider.otherwise = lambda r: text("ok")
        messages = await api.ask(session, "and now")
        assert messages[-1]["content"][0]["text"] == "ok"


async def test_an_overflow_after_the_answer_began_is_not_sent_again(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    late = {"error": {"message": "maximum context length is 9 tokens", "code": "x"}}
    begun = text("so far")
    broken = Reply(pieces=(begun.pieces[0], b"data: " + codec.encode(late) + b"\n\n"))
    async with small(folders) as api:
        session = await api.create()
        for _ in range(3):
            await api.ask(session, PARAGRAPH)
        provider.then(broken)
        messages = await api.ask(session, "go on")
        assert "error" in messages[-1]
        assert "compaction.started" not in await api.facts(session)
    assert len(provider.requests) == 4


async def test_automatic_compaction_can_be_switched_off(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with small(folders, compaction={"auto": False}) as api:
        session = await api.create()
        for _ in range(12):
            await api.ask(session, PARAGRAPH)
        assert "compaction.started" not in await api.facts(session)


async def test_a_model_of_unknown_context_is_not_compacted_by_guesswork(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, None)
    async with running(folders) as instance:
        session = await instance.api.create()
        for _ in range(12):
            await instance.api.ask(session, PARAGRAPH)
        assert "compaction.started" not in await instance.api.facts(session)


async def test_what_the_provider_counts_decides_and_not_what_we_estimate(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    counted = {"prompt_tokens": 29_000, "completion_tokens": 10}
    async with small(folders) as api:
        session = await api.create()
        for _ in range(3):
            await api.ask(session, PARAGRAPH)
        provider.then(text("much", usage=counted))
        await api.ask(session, "short")
        provider.then(text("the summary"), text("ok"))
        await api.ask(session, "also short")
        assert (await api.facts(session)).count("compaction.ended") == 1


async def test_interrupting_while_room_is_made_leaves_a_failed_answer_and_the_old_boundary(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.otherwise = lambda r: text("half a summ", hold=hold) if is_summary(r) else text("ok")
    async with small(folders) as api, asyncio.timeout(20):
        session = await api.create()
        sent = 0
        while not summaries(provider):
            await api.prompt(session, PARAGRAPH)
            sent += 1
            await provider.arrived(sent)
            if not summaries(provider):
                await api.wait(session)
        await api.post(f"/api/session/{session}/interrupt")
        messages = await api.messages(session)
        assert "interrupted" in messages[-1]["error"]["message"]
        assert not await checkpoints(api, session)
        hold.set()
        provider.otherwise = lambda r: text("the summary" if is_summary(r) else "back")
        messages = await api.ask(session, "go on")
        assert messages[-1]["content"][0]["text"] == "back"
    await database_check.check(folders.database)


@requirement("S36")
async def test_audit_history_stays_reachable_through_many_compactions(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.otherwise = lambda r: text("the summary" if is_summary(r) else "ok")
    async with small(folders) as api:
        session = await api.create()
        for number in range(20):
            await api.ask(session, f"number {number} {PARAGRAPH}")
        messages = await api.messages(session)
        log = await api.history(session)
    said = [m["text"].split()[1] for m in messages if m["type"] == "user"]
    assert said == [str(number) for number in range(20)]
    assert len([e for e in log if e["type"] == "session.next.prompted"]) == 20
    assert len([m for m in messages if m["type"] == "compaction"]) >= 2


@requirement("S44", "S58")
async def test_the_epoch_after_a_compaction_knows_the_configuration_that_is_back_by_then(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """The turn began while a file of the configuration could not be looked at."""
    configuration, summarised = folders.project / "opencode.json", asyncio.Event()
    async with small(folders) as api:
        session = await api.create()
        await api.ask(session, "ALWAYS use tabs")
        for number in range(4):
            await api.ask(session, f"read this {number} {PARAGRAPH}")
        before = await api.get(f"/api/session/{session}/provider-context")
        asked = len(provider.requests)
        provider.then(OVERFLOW, text("the summary", hold=summarised))
        with unreadable(
            str(configuration), link_to_itself, aside=str(folders.project.parent / "aside")
        ):
            await api.prompt(session, "go on")
            assert is_summary(await provider.arrived(asked + 2))
        summarised.set()
        await api.wait(session)
        log = await api.history(session)
        after = await api.get(f"/api/session/{session}/provider-context")
    ended = next(e for e in log if e["type"] == "session.next.compaction.ended")
    assert before["data"]["baselineSeq"] < ended["durable"]["seq"]
    assert after["data"]["baselineSeq"] == ended["durable"]["seq"]
