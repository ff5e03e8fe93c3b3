"""How a server tells of itself: what it measures, and what is wrong."""

import asyncio

from tests.support.api import Api
from tests.support.instance import Instance
from tests.support.scripted_provider import Call, ScriptedProvider, calls, refusal, text


async def test_an_operator_sees_how_long_things_take(api: Api, provider: ScriptedProvider) -> None:
    before = await api.get("/api/health/detail")
    assert (before["healthy"], before["problems"], before["running"]) == (True, [], 0)
    assert before["durations"]["turn"]["count"] == 0
    provider.then(calls(Call("glob", {"pattern": "*"})), text("done"))
    session = await api.create()
    await api.ask(session, "look")
    provider.then(refusal(400, {"error": {"message": "no"}}))
    await api.ask(session, "again")
    told = await api.get("/api/health/detail")
    counted = {name: found["count"] for name, found in told["durations"].items()}
    assert (counted["turn"], counted["tool"], counted["boundary"]) == (3, 1, 3)
    assert counted["commit"] > 3
    durations = told["durations"].values()
    assert all(found["p50"] <= found["p99"] <= found["longest"] for found in durations)
    assert told["counts"] == {"boundary.unavailable": 0, "loop.stalled": 0, "turn.failed": 1}
    assert told["baselineChars"] > 0


async def test_an_operator_sees_the_process_and_its_database(api: Api, instance: Instance) -> None:
    told = await api.get("/api/health/detail")
    assert told["database"]["path"] == str(instance.folders.database)
    assert told["database"]["bytes"] > 0
    assert told["process"]["openFiles"] > 3
    assert told["process"]["residentBytes"] > 10_000_000
    assert (await api.get("/api/health")) == {"healthy": True}


async def test_a_running_session_is_counted(api: Api, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.then(text("done", hold=hold))
    session = await api.create()
    await api.prompt(session, "wait for me")
    await provider.arrived(1)
    assert (await api.get("/api/health/detail"))["running"] == 1
    hold.set()
    await api.wait(session)
    assert (await api.get("/api/health/detail"))["running"] == 0
