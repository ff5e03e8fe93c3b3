"""A connection that breaks in the middle of an answer: the user has the whole answer, once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.schema.codec import JsonObject
from tests.acceptance.dialects import configured
from tests.contract.llm.protocols.anthropic import recordings as claude
from tests.contract.llm.protocols.openai_chat import recordings as wire
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Reply, ScriptedProvider, cut, refusal, text

GROQ, MISTRAL, PLAIN = "@ai-sdk/groq", "@ai-sdk/mistral", "@ai-sdk/openai-compatible"


@asynccontextmanager
async def serving(
    root: Path, provider: ScriptedProvider, package: str, **experimental: object
) -> AsyncGenerator[Api]:
    """A server whose model is of that package; the settings are the user's own."""
    entry = configured(package, provider, "model-1")
    folders = make_folders(root, provider, providers={"other": entry}, model="other/model-1")
    if experimental:
        own = root / "home" / ".config" / "opencode" / "opencode.json"
        own.parent.mkdir(parents=True)
        own.write_text(f'{{"experimental": {{"dropped_answers": "{experimental["policy"]}"}}}}')
    async with running(folders) as instance:
        yield instance.api


def texts(message: JsonObject) -> list[str]:
    return [part["text"] for part in message["content"] if part["type"] == "text"]


@pytest.mark.parametrize(("package", "mark"), [(GROQ, {}), (MISTRAL, {"prefix": True})])
async def test_a_model_that_can_goes_on_where_its_answer_broke_off(
    tmp_path: Path, provider: ScriptedProvider, package: str, mark: JsonObject
) -> None:
    provider.then(cut("Once upon ", "a ti"), text("me, and so on."), text("Fine."))
    async with serving(tmp_path, provider, package) as api:
        session = await api.create()
        _, answer = await api.ask(session, "tell")
        facts = await api.facts(session)
        await api.ask(session, "more")
    assert texts(answer) == ["Once upon a time, and so on."]
    assert "error" not in answer
    assert facts[2:] == [
        "step.started",
        "text.started",
        "retried",
        "text.ended",
        "step.ended",
    ]
    first, again, later = (request.body["messages"] for request in provider.requests)
    assert again == [*first, {"role": "assistant", "content": "Once upon a ti", **mark}]
    (told,) = [m["content"] for m in later if m["role"] == "assistant"]
    assert told == "Once upon a time, and so on."


async def test_the_space_at_the_break_is_there_once(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    half = [claude.begin(), *claude.text(0, "Once ")[:-1]]
    rest = [
        claude.begin(),
        *claude.text(0, " upon a time."),
        claude.reason("end_turn"),
        claude.STOP,
    ]
    provider.then(
        Reply(pieces=(claude.body_of(half),), ending="cut"), Reply(pieces=(claude.body_of(rest),))
    )
    entry = configured("@ai-sdk/anthropic", provider, "claude-sonnet-4-5")
    providers = {"claude": entry}
    folders = make_folders(
        tmp_path, provider, providers=providers, model="claude/claude-sonnet-4-5"
    )
    async with running(folders) as instance:
        session = await instance.api.create()
        _, answer = await instance.api.ask(session, "tell")
    assert texts(answer) == ["Once upon a time."]
    last = provider.requests[1].body["messages"][-1]
    assert last == {"role": "assistant", "content": [{"type": "text", "text": "Once"}]}


@pytest.mark.parametrize(
    ("package", "policy", "dropped"),
    [
        (PLAIN, None, cut("Once upon ", "a ti")),
        (GROQ, "restart", cut("Once upon ", "a ti")),
        # Reasoning is taken back whole or not at all.
        (
            GROQ,
            None,
            Reply(
                pieces=tuple(
                    wire.body_of([wire.chunk(delta)])
                    for delta in ({"reasoning": "hm"}, {"content": "Once upon a ti"})
                ),
                ending="cut",
            ),
        ),
    ],
    ids=["cannot go on", "may not go on", "after reasoning"],
)
async def test_another_model_says_it_once_more_from_the_start(
    tmp_path: Path,
    provider: ScriptedProvider,
    package: str,
    policy: str | None,
    dropped: Reply,
) -> None:
    provider.then(dropped, text("Once upon a time, and so on."), text("Fine."))
    settings = {} if policy is None else {"policy": policy}
    async with serving(tmp_path, provider, package, **settings) as api:
        session = await api.create()
        _, broken, answer = await api.ask(session, "tell")
        facts = await api.facts(session)
        await api.ask(session, "more")
    assert texts(broken) == ["Once upon a ti"]
    assert "asked for again from the start" in broken["error"]["message"]
    assert "excluded" in broken["time"]
    assert texts(answer) == ["Once upon a time, and so on."]
    assert facts[-7:-3] == ["message.excluded", "step.failed", "retried", "step.started"]
    first, again, later = (request.body["messages"] for request in provider.requests)
    assert again == first
    (told,) = [m["content"] for m in later if m["role"] == "assistant"]
    assert told == "Once upon a time, and so on."


async def test_a_model_that_refuses_to_go_on_begins_again(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    no = refusal(400, {"error": {"message": "the last message must be the user's"}})
    provider.then(cut("Once upon ", "a ti"), no, text("Once upon a time."))
    async with serving(tmp_path, provider, GROQ) as api:
        session = await api.create()
        _, broken, answer = await api.ask(session, "tell")
    assert (texts(broken), texts(answer)) == (["Once upon a ti"], ["Once upon a time."])


async def test_a_user_may_want_it_to_fail(tmp_path: Path, provider: ScriptedProvider) -> None:
    provider.then(cut("Once upon ", "a ti"))
    async with serving(tmp_path, provider, GROQ, policy="fail") as api:
        session = await api.create()
        _, broken = await api.ask(session, "tell")
        assert texts(broken) == ["Once upon a ti"]
        assert "connection" in broken["error"]["message"]
        assert len(provider.requests) == 1
        *_, answer = await api.ask(session, "go on")
    assert texts(answer) == ["ok"]


async def test_an_answer_that_has_begun_a_call_is_not_asked_for_again(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    begun = wire.chunk(wire.call(0, id="a", name="bash", arguments='{"comm'))
    frames = wire.body_of([wire.chunk({"content": "I look."}), begun])
    provider.then(Reply(pieces=(frames,), ending="cut"))
    async with serving(tmp_path, provider, GROQ) as api:
        session = await api.create()
        _, broken = await api.ask(session, "look")
    assert "connection" in broken["error"]["message"]
    assert len(provider.requests) == 1


async def test_a_connection_that_always_breaks_is_given_up(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    provider.otherwise = lambda request: cut("and on ")
    async with serving(tmp_path, provider, GROQ) as api:
        session = await api.create()
        messages = await api.ask(session, "tell")
    assert "error" in messages[-1]
    most = (limits.ANSWER_CONTINUATIONS_MAX + 1) * limits.RETRY_ATTEMPTS_MAX
    assert limits.RETRY_ATTEMPTS_MAX < len(provider.requests) <= most
