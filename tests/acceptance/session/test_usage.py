"""What a Session has used is told to the last request, and bounded where a person says so."""

import asyncio
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, text

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
# Of the scripted model: one dollar for a million tokens in, ten for a million out.
PRICE = 0.002
LONG = "lorem ipsum " * 3_500


async def used(api: Api, session: str) -> JsonObject:
    return (await api.get(f"/api/session/{session}/usage"))["data"]


async def bound(api: Api, session: str, **budget: object) -> JsonObject:
    answer = await api.call("PUT", f"/api/session/{session}/budget", budget)
    assert answer.status == 200, answer.json
    return answer.json["data"]


async def test_turns_and_summaries_are_told_apart_and_counted_together(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    empty = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    nothing: JsonObject = {"cost": 0.0, "tokens": empty, "turns": 0, "models": []}
    assert await used(api, session) == {"session": nothing, "tree": nothing}
    provider.otherwise = lambda request: text("ok", usage=USAGE)
    await api.ask(session, f"first {LONG}")
    await api.ask(session, "second")
    await api.post(f"/api/session/{session}/compact")
    told = await used(api, session)
    assert told["tree"] == told["session"]
    own = told["session"]
    assert own["turns"] == 2
    lines = [(line["purpose"], line["requests"], line["cost"]) for line in own["models"]]
    assert lines == [("turn", 2, pytest.approx(2 * PRICE)), ("summary", 1, pytest.approx(PRICE))]
    assert {line["model"]["id"] for line in own["models"]} == {"fake-model"}
    shown = await api.session(session)
    assert (own["cost"], own["tokens"]) == (shown["cost"], shown["tokens"])
    assert shown["cost"] == pytest.approx(3 * PRICE)
    assert shown["tokens"]["input"] == 3_000
    assert "spent" in await api.facts(session)


SPELLINGS: tuple[JsonObject, ...] = (
    {"prompt_tokens": 1_000, "completion_tokens": 100},
    {
        "prompt_tokens": 50_000,
        "completion_tokens": 900,
        "total_tokens": 50_900,
        "prompt_tokens_details": {"cached_tokens": 30_000, "cache_write_tokens": 15_000},
        "completion_tokens_details": {"reasoning_tokens": 400},
    },
    {"prompt_tokens": 9_000, "completion_tokens": 30, "cached_tokens": 8_000},
    {
        "prompt_tokens": 150_000,
        "completion_tokens": 9,
        "total_tokens": 150_103,
        "prompt_cache_hit_tokens": 100_000,
        "completion_tokens_details": {"reasoning_tokens": 94},
    },
)
"""Of several servers, at three tiers of the price."""


def dollars(tokens: JsonObject) -> float:
    """What the recorded tokens cost at the prices below, counted by hand."""
    read, write = tokens["cache"]["read"], tokens["cache"]["write"]
    context = tokens["input"] + read + write
    factor = 4 if context > 128_000 else 2 if context > 32_000 else 1
    plain = tokens["input"] + write + 10 * (tokens["output"] + tokens["reasoning"])
    return factor * (plain + read / 4) / 1_000_000


async def test_the_cost_is_that_of_the_recorded_tokens_at_their_tier(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    prices = [
        {"input": n, "output": 10 * n, "cache": {"read": n / 4}, **({"tier": t} if t else {})}
        for n, t in ((1, {}), (2, {"size": 32_000}), (4, {"size": 128_000}))
    ]
    folders = make_folders(tmp_path, provider)
    path = folders.project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    configuration["providers"]["fake"]["models"]["fake-model"]["cost"] = prices
    path.write_bytes(codec.encode(configuration))
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        for usage in SPELLINGS:
            provider.then(text("ok", usage=usage))
            await api.ask(session, "go on")
        steps = [m for m in await api.messages(session) if m["type"] == "assistant"]
        shown = await api.session(session)
        told = (await used(api, session))["session"]
    assert [m["cost"] for m in steps] == [pytest.approx(dollars(m["tokens"])) for m in steps]
    assert shown["cost"] == told["cost"] == pytest.approx(sum(m["cost"] for m in steps))
    counted = [sum((t["input"], t["output"], t["reasoning"])) for t in (m["tokens"] for m in steps)]
    cached = [sum(m["tokens"]["cache"].values()) for m in steps]
    assert [a + b for a, b in zip(counted, cached, strict=True)] == [1_100, 50_900, 9_030, 150_103]


async def test_a_title_is_paid_for_even_if_a_person_chose_another_meanwhile(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider, agents={"title": {"model": "fake/fake-model"}})
    hold = asyncio.Event()
    provider.then(text("hello", usage=USAGE), text("A Title", usage=USAGE, hold=hold))
    async with running(folders) as instance, asyncio.timeout(PATIENCE_SECONDS):
        api = instance.api
        session = await api.create()
        async with api.events(session) as stream:
            await api.prompt(session, "say hello")
            await provider.arrived(2)
            await api.call("PATCH", f"/api/session/{session}", {"title": "Mine"})
            hold.set()
            await stream.until("spent")
        told = (await used(api, session))["session"]
        purposes = [(line["purpose"], line["requests"]) for line in told["models"]]
        assert purposes == [("turn", 1), ("title", 1)]
        assert told["cost"] == (await api.session(session))["cost"] == pytest.approx(2 * PRICE)
        assert (await api.session(session))["title"] == "Mine"


@pytest.mark.parametrize(
    ("budget", "raised"),
    [
        ({"cost": PRICE}, {"cost": 2 * PRICE}),
        ({"tokens": 1_100}, {"tokens": 1_101}),
        ({"turns": 1}, {"turns": 2}),
        ({"cost": PRICE, "turns": 9}, {}),
    ],
)
async def test_a_session_stops_at_its_own_budget_and_goes_on_when_it_is_raised(
    folders: ProjectFolders, provider: ScriptedProvider, budget: JsonObject, raised: JsonObject
) -> None:
    provider.otherwise = lambda request: text("ok", usage=USAGE)
    async with running(folders) as instance:
        api = instance.api
        session, other = await api.create(), await api.create()
        assert (await bound(api, session, **budget))["budget"] == budget
        assert (await api.ask(session, "one"))[-1]["finish"] == "stop"
    # It outlives the process that was told.
    async with running(folders) as instance:
        api = instance.api
        *_, refused = await api.ask(session, "two")
        kind = next(iter(budget))
        assert f"`{kind}` of the `budget` of Session {session}" in refused["error"]["message"]
        assert len(provider.requests) == 1
        assert (await api.session(session))["budget"] == budget
        assert (await used(api, session))["budget"] == budget
        assert (await api.ask(other, "one"))[-1]["finish"] == "stop"
        assert (await bound(api, session, **raised)).get("budget", {}) == raised
        assert (await api.ask(session, "three"))[-1]["finish"] == "stop"


async def test_a_fork_keeps_the_budget_and_what_its_conversation_has_cost(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.otherwise = lambda request: text("ok", usage=USAGE)
    session = await api.create()
    await bound(api, session, turns=1)
    await api.ask(session, "one")
    fork = (await api.post(f"/api/session/{session}/fork"))["data"]
    assert fork["budget"] == {"turns": 1}
    assert (await used(api, fork["id"]))["session"] == (await used(api, session))["session"]
    assert (await api.ask(fork["id"], "two"))[-1]["finish"] == "error"


@pytest.mark.parametrize(
    "body",
    [{"cost": -1}, {"tokens": 1.5}, {"turns": "3"}, {"cost": "much"}, {"turns": 2**60}, [], 5],
)
async def test_a_budget_that_makes_no_sense_is_refused_and_changes_nothing(
    api: Api, body: object
) -> None:
    session = await api.create()
    await bound(api, session, turns=3)
    answer = await api.call("PUT", f"/api/session/{session}/budget", body)
    assert (answer.status, answer.tag) == (400, "InvalidRequestError")
    assert (await api.session(session))["budget"] == {"turns": 3}


async def test_the_same_budget_again_is_no_event_and_a_deleted_session_has_none(api: Api) -> None:
    session = await api.create()
    for _ in range(3):
        await bound(api, session, cost=1.5)
    assert (await api.facts(session)).count("budget.changed") == 1
    assert (await api.call("DELETE", f"/api/session/{session}")).status == 204
    for method, path in (("GET", "usage"), ("PUT", "budget")):
        answer = await api.call(
            method, f"/api/session/{session}/{path}", {} if method == "PUT" else None
        )
        assert (answer.status, answer.tag) == (404, "SessionNotFoundError")
