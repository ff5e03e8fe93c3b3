"""A Session with a model of each wire protocol, over real HTTP: what a user has of all of them."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.core import limits
from tests.acceptance.dialects import DIALECTS
from tests.acceptance.two_providers import FAKE, Pair, paired
from tests.requirements import requirement
from tests.support.scripted_provider import (
    SECRET,
    Call,
    Request,
    ScriptedProvider,
    calls,
    refusal,
    text,
)

OWN = "toolu_01AAAAAAAAAAAAAAAAAAAA"


@pytest.fixture(params=DIALECTS)
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path, provider: ScriptedProvider
) -> AsyncGenerator[Pair]:
    async with paired(request.param, tmp_path, provider) as opened:
        yield opened


def sealed(pair: Pair, request: Request) -> bool:
    """Whether a request gives reasoning back with the proof that it is the other's."""
    return pair.speaks.seal is not None and pair.speaks.seal in request.raw.decode()


async def test_an_error_inside_an_answer_ends_the_turn_and_not_the_session(pair: Pair) -> None:
    speaks, api = pair.speaks, pair.api
    pair.other.then(
        speaks.fails(f"no such thing as {SECRET}"),
        refusal(400, speaks.refuses("not so")),
        speaks.says("Fine."),
    )
    session = await api.create()
    _, failed = await api.ask(session, "one")
    assert "no such thing as [redacted]" in failed["error"]["message"]
    *_, refused = await api.ask(session, "two")
    assert "not so" in refused["error"]["message"]
    *_, fine = await api.ask(session, "three")
    assert [part["text"] for part in fine["content"] if part["type"] == "text"] == ["Fine."]
    # Reasoning of a turn that failed is not proven any more, and may not be whole.
    pair.accepted(2)
    assert not sealed(pair, pair.other.requests[2])


async def test_an_answer_larger_than_any_may_be_is_stopped_and_not_asked_for_again(
    pair: Pair,
) -> None:
    speaks, api, most = pair.speaks, pair.api, limits.ANSWER_TEXT_CHARS_MAX
    pair.other.then(speaks.says("x" * (most + 1_000)))
    session = await api.create()
    _, stopped = await api.ask(session, "one")
    assert f"more than {most:,} characters of text" in stopped["error"]["message"]
    assert [len(part["text"]) for part in stopped["content"] if part["type"] == "text"] == [most]
    assert len(pair.other.requests) == 1
    assert (await api.get("/api/session/active"))["data"] == {}


@requirement("S161", "S197")
async def test_a_conversation_may_change_its_provider_back_and_forth(pair: Pair) -> None:
    speaks, api = pair.speaks, pair.api
    pair.fake.then(
        calls(Call("bash", {"command": "echo one"}, "call_0"), saying="First."),
        calls(Call("bash", {"command": "echo two"}, "call_0")),
        text("Here.", reasoning=("a foreign ", "thought")),
        text("Back again."),
    )
    pair.other.then(
        speaks.asks(OWN, "bash", {"command": "echo three"}),
        speaks.says("There."),
    )
    session = await api.create(model=FAKE)
    await api.ask(session, "one")
    await pair.switch(session, speaks.model)
    await api.ask(session, "two")
    await pair.switch(session, FAKE)
    *_, last = await api.ask(session, "three")
    assert last["content"][0]["text"] == "Back again."
    assert len(pair.other.requests) == 2
    for number, request in enumerate(pair.other.requests):
        # Both calls of the first provider had the same id; the rules want different ones.
        pair.accepted(number)
        for earlier in ("a foreign thought", "echo one", "echo two"):
            assert earlier in request.raw.decode()
    back = pair.fake.requests[-1]
    assert [c["id"] for m in back.messages for c in m.get("tool_calls", ())][-1] == OWN
    assert "hm" in "".join(said or "" for said in back.texts("assistant"))
    assert not sealed(pair, back)
