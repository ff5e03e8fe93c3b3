"""Recorded traffic of the published server, made again here: statuses, shapes and orders.

The recordings are kept as shapes (`scripts/recorded_shapes.py` writes them). Requests are sent in
their order to a real server; ids that it made stand for those that were recorded. Runs are made
again with the people in them; both of their streams are compared. Where we answer differently
there is a reason in `deviations.py`, and it is still needed in every recording that it is for.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonObject
from tests.contract.recorded import runs
from tests.contract.recorded.deviations import EVENTS, EXCHANGES, FILES, RUNS, STATUS
from tests.contract.recorded.replay import Replay
from tests.contract.recorded.stage import EVERYTHING, recorded, serving, staged
from tests.requirements import requirement
from tests.support.scripted_provider import ScriptedProvider, scripted_provider

STOPPED: Final = "..."
"""Stands where a stream was no longer recorded although its run went on."""


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@requirement("S117")
@pytest.mark.parametrize("name", FILES)
async def test_answers_have_the_recorded_status_and_shape(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    settings = {"permissions": EVERYTHING} if name == "misc_semantics" else {}
    async with serving(tmp_path, provider, **settings) as instance:
        replay = Replay(instance, provider)
        found = [
            f"{name}: {exchange['name']}: {difference}"
            for exchange in recorded(name)
            for difference in await replay.differences(exchange)
        ]
    _check_reasons(name, found, EXCHANGES)


@requirement("S117")
@pytest.mark.parametrize("name", sorted(runs.RUNS))
async def test_a_run_is_told_in_the_recorded_order_and_shapes(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    settings = {} if name.startswith("perm_") else {"permissions": EVERYTHING}
    async with staged(tmp_path, provider, runs.CHOSEN.get(name, {}), **settings) as stage:
        await runs.RUNS[name](stage)
        streams = await stage.streams()
    _check_order(name, {stream: _types(events) for stream, events in streams.items()})
    shapes = recorded("events")
    found = [
        f"{name}: {difference}"
        for stream, events in streams.items()
        for event in events
        for difference in _event_differences(stream, event, shapes)
    ]
    _check_reasons(name, found, EVENTS)


def test_every_recorded_run_is_made_again() -> None:
    assert set(recorded("runs")) == set(runs.RUNS)


def test_a_difference_is_seen() -> None:
    shape = {"id": "<ses1>", "list": [{"a": {"type": "string", "n": "number"}}], "opt?": "string"}
    assert Replay.compared(shape, {"id": "ses_x", "list": [{"type": "a", "n": 1}]}) == []
    ours = {"list": [{"type": "a", "n": "1"}, {"type": "b"}], "more": 1}
    assert Replay.compared(shape, ours) == [
        ".id is missing",
        ".more is new",
        ".list[a].n: string instead of number",
        ".list[b] is new",
    ]


def test_a_difference_without_a_reason_and_a_reason_without_one_are_failures() -> None:
    reasons = {r"(one|two): x": "known"}
    _check_reasons("one", ["one: x"], reasons)
    _check_reasons("three", [], reasons)
    with pytest.raises(AssertionError):
        _check_reasons("one", ["one: x", "one: y"], reasons)
    with pytest.raises(AssertionError):
        _check_reasons("two", [], reasons)


def _check_order(name: str, ours: dict[str, list[str]]) -> None:
    wanted = recorded("runs")[name]
    durable = [each.removeprefix("next.") for each in ours["durable"]]
    told = [each.removeprefix("next.") for each in ours["live"] if _is_durable(each)]
    assert told == durable
    assert STATUS in ours["live"]
    if name in RUNS:
        assert durable == list(RUNS[name].ours)
        assert ours["durable"] != wanted["durable"]
        return
    assert ours["durable"] == wanted["durable"]
    live = [each for each in ours["live"] if each != STATUS]
    if wanted["live"][-1] == STOPPED:
        wanted["live"].pop()
        live = live[: len(wanted["live"])]
    assert live == wanted["live"]


def _types(events: list[JsonObject]) -> list[str]:
    """In their order; deltas that follow each other are one."""
    types: list[str] = []
    for event in events:
        found = event["type"].removeprefix("session.")
        if not (found.endswith(".delta") and types[-1:] == [found]):
            types.append(found)
    return types


def _is_durable(type: str) -> bool:
    return type.startswith("next.") and not type.endswith(".delta")


def _event_differences(stream: str, event: JsonObject, shapes: JsonObject) -> list[str]:
    key = f"{stream} {event['type'].removeprefix('session.')}"
    if key == f"live {STATUS}":
        return []
    if key not in shapes:
        return [f"{key} is new"]
    return [f"{key}: {difference}" for difference in Replay.compared(shapes[key], event)]


def _check_reasons(name: str, found: list[str], reasons: Mapping[str, str]) -> None:
    """Every difference has a reason, and every reason that is for this name is needed."""
    used = {line: [each for each in reasons if re.fullmatch(each, line)] for line in found}
    assert [line for line, patterns in used.items() if not patterns] == []
    mine = {each for each in reasons if re.fullmatch(each.partition(":")[0], name)}
    assert mine - {each for patterns in used.values() for each in patterns} == set()
