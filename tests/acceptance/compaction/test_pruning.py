"""Large tool results are pruned first: the model is sent less, and history keeps everything."""

from pathlib import Path
from typing import Final

import pytest

from perdure.core.compaction.outcome import STILL_TOO_LARGE
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support import database_check
from tests.support.api import Api
from tests.support.inputs.images import inlined, picture
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

FILE_BYTES: Final = 49 * 1024
MARKER: Final = "was removed here to make room"


def is_summary(request: Request) -> bool:
    return "tools" not in request.body and request.roles == ["user"]


def configure(folders: ProjectFolders, limit: JsonObject, **settings: object) -> None:
    path = folders.project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    configuration["providers"]["fake"]["models"]["small"] = {"limit": limit}
    path.write_bytes(codec.encode({**configuration, "model": "fake/small", **settings}))


def read_files(folders: ProjectFolders, provider: ScriptedProvider, count: int) -> None:
    """The model reads `count` files of 49 KB, one after the other, and then answers."""
    for number in range(count):
        line = f"line of file {number} that says something\n"
        content = line * (FILE_BYTES // len(line))
        (folders.project / f"{number}.txt").write_text(content, encoding="utf-8")
    unread = iter(range(count))

    def answer(request: Request) -> Reply:
        if is_summary(request):
            return text("the summary")
        number = next(unread, None)
        return text("done") if number is None else calls(Call("read", {"path": f"{number}.txt"}))

    provider.otherwise = answer


def results(request: Request) -> list[str]:
    return request.texts("tool")


async def window(api: Api, session: str) -> JsonObject:
    found = await api.get(f"/api/session/{session}/provider-context")
    return found["data"]["window"]


@requirement("S36", "S90")
@pytest.mark.parametrize(("context", "count"), [(200_000, 14), (200_000, 40), (64_000, 13)])
async def test_many_large_reads_fit_after_the_old_ones_are_pruned(
    folders: ProjectFolders, provider: ScriptedProvider, context: int, count: int
) -> None:
    configure(folders, {"context": context, "output": context // 6})
    read_files(folders, provider, count)
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        messages = await api.ask(session, "read them all")
        facts = await api.facts(session)
        found = await window(api, session)
    assert messages[-1]["content"][0]["text"] == "done"
    assert "step.failed" not in facts
    assert "tool.pruned" in facts
    assert "compaction.started" not in facts
    assert not any(map(is_summary, provider.requests))
    assert not found["compacts"]
    _check_pairs(provider)
    _check_prefixes(provider)
    _check_markers(provider.requests[-1], folders)
    # History has every result whole.
    parts = [part for m in messages if m["type"] == "assistant" for part in m["content"]]
    reads = [part for part in parts if part["type"] == "tool"]
    assert len(reads) == count
    assert all(len(part["state"]["content"][0]["text"]) > FILE_BYTES for part in reads)
    await database_check.check(folders.database)


async def test_what_was_pruned_is_sent_the_same_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 64_000, "output": 8_000})
    read_files(folders, provider, 8)
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "read them all")
        await instance.api.ask(session, "and now")
    before = provider.requests[-1]
    async with running(folders) as instance:
        await instance.api.ask(session, "again")
    after = provider.requests[-1]
    assert any(MARKER in result for result in results(before))
    shared = len(before.messages)
    assert after.messages[:shared] == before.messages
    assert after.body["tools"] == before.body["tools"]


async def test_a_checkpoint_does_not_bring_back_what_was_pruned(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 64_000, "output": 8_000}, compaction={"keep": {"tokens": 400}})
    read_files(folders, provider, 8)
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "read them all")
        for _ in range(2):
            answer = await instance.api.call("POST", f"/api/session/{session}/compaction", {})
            report = answer.json["data"]
            if report["outcome"] == "nothing":
                assert report["tokensAfter"] == report["tokensBefore"]
            else:
                assert report["tokensAfter"] < report["tokensBefore"]
        messages = (await instance.api.get(f"/api/session/{session}/context"))["data"]
    recent = "".join(message.get("recent", "") for message in messages)
    assert "that says something" not in recent


async def test_reads_that_alone_are_larger_than_a_small_window_are_told_as_markers(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 16_000, "output": 1_000}, permissions=_ONLY_READING)
    read_files(folders, provider, 3)
    async with running(folders) as instance:
        session = await instance.api.create()
        messages = await instance.api.ask(session, "read them all")
        assert messages[-1]["content"][0]["text"] == "done"
        assert "step.failed" not in await instance.api.facts(session)
    _check_pairs(provider)
    assert all(len(request.raw) < 16_000 * 4 for request in provider.requests)


async def test_compacting_by_hand_answers_what_it_freed_or_why_nothing(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 400_000, "output": 8_000})
    read_files(folders, provider, 13)
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        await api.ask(session, "read them all")
        before = await window(api, session)
        path = f"/api/session/{session}/compaction"
        report = (await api.post(path))["data"]
        after = await window(api, session)
        assert report["outcome"] == "pruned"
        assert report["results"] == 13
        assert report["tokensAfter"] < report["tokensBefore"] / 10
        assert after["tokens"] < before["tokens"] / 10
        again = await api.call("POST", f"/api/session/{session}/compact")
        assert (again.status, again.body) == (204, b"")
        told = codec.decode_any(again.headers["perdure-compaction"])
        assert told["outcome"] == "nothing"
        assert "compaction.keep.tokens" in told["reason"]
        await api.ask(session, "go on")
    _check_markers(provider.requests[-1], folders)


async def test_a_summary_that_fails_still_leaves_what_was_pruned(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 400_000, "output": 8_000})
    read_files(folders, provider, 5)
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        await api.ask(session, "read them all")
        provider.otherwise = lambda r: text("ok")
        for _ in range(4):
            await api.ask(session, "lorem ipsum " * 1_000)
        provider.otherwise = lambda r: refusal(400, {"error": {"message": "no such thing"}})
        report = (await api.post(f"/api/session/{session}/compaction"))["data"]
    assert (report["outcome"], report["results"]) == ("pruned", 5)
    assert "no such thing" in report["reason"]
    assert report["tokensAfter"] < report["tokensBefore"]


async def test_an_overflow_with_a_number_is_a_limit_that_the_next_turn_keeps(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """The catalog says 200,000 tokens, and the provider takes 40,000."""
    configure(folders, {"context": 200_000, "output": 8_000})
    refused: list[int] = []

    def answer(request: Request) -> Reply:
        if is_summary(request):
            return text("the summary")
        if len(request.raw) > 40_000 * 4:
            refused.append(len(request.raw))
            told = f"prompt is too long: {len(request.raw) // 4} tokens > 40000 maximum"
            return refusal(400, {"error": {"message": told}})
        return text("ok")

    provider.otherwise = answer
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        for number in range(60):
            messages = await api.ask(session, f"{number} " + "lorem ipsum " * 1_000)
            assert "error" not in messages[-1]
        assert (await window(api, session))["requestMax"] <= 40_000
    assert len(refused) == 1


async def test_a_provider_that_takes_far_less_than_it_says_is_met_after_a_few_turns(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    """It refuses without a number: what was refused is all that is known."""
    configure(folders, {"context": 200_000, "output": 8_000}, permissions=_ONLY_READING)
    provider.otherwise = lambda r: text("ok")
    told = {"error": {"message": "context_length_exceeded"}}
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        for _ in range(40):
            await api.ask(session, "lorem ipsum " * 1_000)
        provider.otherwise = lambda r: refusal(400, told) if len(r.raw) > 12_000 * 4 else text("ok")
        tries = 1
        while "error" in (await api.ask(session, "go on"))[-1]:
            tries += 1
            assert tries < 5
        assert "error" not in (await api.ask(session, "and on"))[-1]


@pytest.mark.parametrize("context", [16_000, 64_000, 200_000])
async def test_one_message_larger_than_the_window_fails_with_its_name_and_the_session_goes_on(
    folders: ProjectFolders, provider: ScriptedProvider, context: int
) -> None:
    configure(folders, {"context": context, "output": 1_000}, permissions=_ONLY_READING)
    provider.otherwise = lambda r: text("the summary" if is_summary(r) else "ok")
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        await api.ask(session, "hello")
        sent = len(provider.requests)
        *_, prompt, failed = await api.ask(session, "lorem ipsum " * (context // 2))
        reason = failed["error"]["message"]
        assert prompt["id"] in reason
        assert f"perdure context {session} --exclude {prompt['id']}" in reason
        assert "fake/small" in reason
        assert len(provider.requests) == sent, "a request that cannot fit is not sent"
        messages = await api.ask(session, "then let us talk about the weather")
        assert messages[-1]["content"][0]["text"] == "ok"
    assert STILL_TOO_LARGE not in reason


async def test_pictures_that_a_model_is_not_sent_do_not_fill_its_window(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 16_000, "output": 1_000}, permissions=_ONLY_READING)
    path = folders.project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    reads = {"tools": True, "input": ["text"], "output": ["text"]}
    configuration["providers"]["fake"]["models"]["small"]["capabilities"] = reads
    path.write_bytes(codec.encode(configuration))
    files = [{"uri": inlined(picture()), "name": f"{number}.png"} for number in range(20)]
    async with running(folders) as instance:
        session = await instance.api.create()
        prompt = {"text": "what is on them?", "files": files}
        messages = await instance.api.ask(session, "", prompt=prompt)
        found = await window(instance.api, session)
    assert "error" not in messages[-1]
    assert found["tokens"] < 20 * 400
    assert b"Attachment left out" in provider.requests[-1].raw


async def test_instructions_and_tools_that_fill_the_window_are_named(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure(folders, {"context": 8_000, "output": 1_000}, permissions=_ONLY_READING)
    (folders.project / "AGENTS.md").write_text("be exact " * 3_000, encoding="utf-8")
    told = {"error": {"message": "context_length_exceeded"}}
    provider.otherwise = lambda r: refusal(400, told)
    async with running(folders) as instance:
        session = await instance.api.create()
        messages = await instance.api.ask(session, "hello")
    assert "Instructions and tools alone" in messages[-1]["error"]["message"]
    assert "context_length_exceeded" in messages[-1]["error"]["message"]


_ONLY_READING: Final = [
    {"action": "*", "resource": "*", "effect": "deny"},
    {"action": "read", "resource": "*", "effect": "allow"},
]


def _check_pairs(provider: ScriptedProvider) -> None:
    for request in provider.requests:
        wanted = [c["id"] for m in request.messages for c in m.get("tool_calls", ())]
        given = [m["tool_call_id"] for m in request.messages if m["role"] == "tool"]
        assert wanted == given


def _check_prefixes(provider: ScriptedProvider) -> None:
    """A request begins with the one before it, up to the first result that became a marker."""
    for before, after in zip(provider.requests, provider.requests[1:], strict=False):
        for old, new in zip(before.messages, after.messages, strict=False):
            if old != new:
                assert MARKER in new["content"]
                assert MARKER not in old["content"]
                break


def _check_markers(request: Request, folders: ProjectFolders) -> None:
    """Each marker names a file that has the text of the result."""
    markers = [result for result in results(request) if MARKER in result]
    assert markers
    for number, marker in enumerate(markers):
        path = Path(marker.split("The whole text is in ")[1].split(": read")[0])
        assert path.parent == folders.tool_output
        assert f"line of file {number} " in path.read_text(encoding="utf-8")
