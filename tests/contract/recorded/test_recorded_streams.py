"""Recorded live streams as a whole, and what a restart found, made again here.

Each stream is listened to from its greeting on, and everything that it tells is compared: which
events of which Sessions, in which order, of which shape, and the silence between them.
"""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest

from perdure.core import limits
from tests.contract.recorded import restart
from tests.contract.recorded.answers import head_differences
from tests.contract.recorded.deviations import RESTART, STATUS, STREAMS, check_reasons
from tests.contract.recorded.replay import Replay
from tests.contract.recorded.scenarios import SCENES
from tests.contract.recorded.stage import EVERYTHING, recorded, serving
from tests.contract.recorded.streams import (
    HEARTBEAT,
    Told,
    event_differences,
    merged,
    order_differences,
    types,
)
from tests.requirements import requirement
from tests.support.scripted_provider import ScriptedProvider, scripted_provider

BEAT_SECONDS: Final = 0.1


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@requirement("S130")
@pytest.mark.parametrize("name", sorted(SCENES))
async def test_a_live_stream_tells_what_the_recorded_one_told(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    allowed = () if name == "perm_question" else EVERYTHING
    wanted, shapes = recorded("live")[name], recorded("events")
    async with (
        serving(
            tmp_path, provider, permissions=allowed, heartbeat_seconds=BEAT_SECONDS
        ) as instance,
        instance.api.stream("/api/event") as stream,
    ):
        told = Told(stream)
        greeting = [await told.next(), await told.next()]
        await SCENES[name](instance, provider, told)
    assert told.lines[: len(greeting)] == wanted["frames"][: len(greeting)]
    found = head_differences(wanted["headers"], stream.headers)
    found += order_differences(_heard(wanted["frames"]), _heard(told.lines))
    for event in told.events:
        found += event_differences("live", event, shapes)
    check_reasons(name, [f"{name}: {difference}" for difference in found], STREAMS)


def test_every_recorded_stream_is_made_again() -> None:
    assert set(recorded("live")) == set(SCENES)


def test_a_heartbeat_comes_as_often_as_it_did() -> None:
    assert recorded("live")["live_heartbeat"]["seconds"] == [limits.HEARTBEAT_SECONDS] * 2


@requirement("S70", "S189")
async def test_a_restart_finds_and_does_what_the_recorded_one_did(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    wanted, shapes = recorded("restart_recovery"), recorded("events")
    ours = await restart.looks(tmp_path, provider)
    assert ours.keys() == wanted.keys()
    found: list[str] = []
    for case, look in ours.items():
        differences = order_differences(wanted[case]["history"], types(look["history"]))
        for part in ("messages", "active"):
            differences += Replay.compared(wanted[case][part], look[part])
        for event in look["history"]:
            differences += event_differences("durable", event, shapes)
        found += [f"{case}: {difference}" for difference in differences]
    for case in ours:
        check_reasons(case, [line for line in found if line.startswith(case)], RESTART)


def _heard(lines: list[str]) -> list[str]:
    """Without what may come at any time, and what only we tell."""
    return merged(line for line in lines if line != HEARTBEAT and not line.startswith(f"{STATUS} "))
