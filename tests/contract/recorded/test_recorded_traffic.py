"""Recorded traffic of the published server, made again here: statuses, shapes and orders.

The recordings are kept as shapes (`scripts/recorded_shapes.py` writes them). Requests are sent in
their order to a real server; ids that it made stand for those that were recorded. Runs are made
again with the people in them; both of their streams are compared, and what the Session is at their
end. Where we answer differently there is a reason in `deviations.py`, and it is still needed in
every recording that it is for.
"""

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonObject
from tests.contract.recorded import runs
from tests.contract.recorded.deviations import (
    EVENTS,
    EXCHANGES,
    FILES,
    RUNS,
    SETTLED,
    STATUS,
    check_reasons,
)
from tests.contract.recorded.replay import Replay
from tests.contract.recorded.stage import EVERYTHING, FOLDER, MODEL, recorded, serving, staged
from tests.contract.recorded.streams import event_differences, order_differences, outline, types
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
    allowed = EVERYTHING if name in {"misc_semantics", "run_revert"} else ()
    async with serving(tmp_path, provider, permissions=allowed) as instance:
        replay = Replay(instance, provider)
        found = [
            f"{name}: {exchange['name']}: {difference}"
            for exchange in recorded(name)
            for difference in await replay.differences(exchange)
        ]
    check_reasons(name, found, EXCHANGES)


@requirement("S117")
@pytest.mark.parametrize("name", sorted(runs.RUNS))
async def test_a_run_is_told_in_the_recorded_order_and_shapes(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    allowed = () if name.startswith("perm_") else EVERYTHING
    chosen = runs.CHOSEN.get(name, {"model": MODEL})
    async with staged(tmp_path, provider, chosen, permissions=allowed) as stage:
        await runs.RUNS[name](stage)
        streams = await stage.streams()
        settled = await stage.settled()
    _check_order(name, {stream: types(events) for stream, events in streams.items()})
    shapes = recorded("events")
    found = [
        f"{name}: {difference}"
        for stream, events in streams.items()
        for event in events
        for difference in event_differences(stream, event, shapes)
    ]
    check_reasons(name, found, EVENTS)
    found = [f"{name}: {difference}" for difference in _settled_differences(name, settled)]
    check_reasons(name, found, SETTLED)


def test_every_fixture_is_replayed_by_a_test() -> None:
    sources = (path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
    asked = {name for text in sources for name in re.findall(r'recorded\("(\w+)"\)', text)}
    assert {path.stem for path in FOLDER.glob("*.json")} == {*FILES, *asked}
    assert set(recorded("runs")) == set(recorded("settled")) == set(runs.RUNS)


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


def test_an_order_that_differs_is_seen_with_its_place() -> None:
    assert order_differences(["a", "b", "c"], ["a", "b", "c"]) == []
    assert order_differences(["a", "b", "c"], ["n", "a", "b", "m"]) == [
        "n is new after the beginning",
        "c is missing after b",
        "m is new after b",
    ]


def test_a_difference_without_a_reason_and_a_reason_without_one_are_failures() -> None:
    reasons = {r"(one|two): x": "known"}
    check_reasons("one", ["one: x"], reasons)
    check_reasons("three", [], reasons)
    with pytest.raises(AssertionError):
        check_reasons("one", ["one: x", "one: y"], reasons)
    with pytest.raises(AssertionError):
        check_reasons("two", [], reasons)


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


def _settled_differences(name: str, ours: JsonObject) -> list[str]:
    wanted: JsonObject = recorded("settled")[name]
    lines = [outline(message) for message in ours["messages"]["data"]]
    found = order_differences(wanted["outline"], lines)
    for part in wanted.keys() - {"outline"}:
        found += [f"{part}{line}" for line in Replay.compared(wanted[part], ours[part])]
    return found


def _is_durable(type: str) -> bool:
    return type.startswith("next.") and not type.endswith(".delta")
