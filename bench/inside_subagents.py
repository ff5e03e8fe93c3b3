"""Measures many subagents at work at once: `python -m bench inside subagents`."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench.inside import measure
from tests.acceptance.session_scripts import Cast, task
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import make_place
from tests.support.scripted_provider import Reply, Request, calls, scripted_provider, text

CHILDREN = 10
ROUNDS = 5
THINKS_SECONDS = 0.3


@measure
async def subagents() -> dict[str, object]:
    """Milliseconds until one child of a turn is done, and until ten are (budget: 2x)."""
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_provider() as provider:
            cast = Cast(provider)
            async with running(make_place(Path(folder), provider)) as instance:
                await delegated(instance.api, cast, "warm", 1)
                one = [await delegated(instance.api, cast, f"a{n}", 1) for n in range(ROUNDS)]
                ten = [
                    await delegated(instance.api, cast, f"b{n}", CHILDREN) for n in range(ROUNDS)
                ]
    return {
        "one_median_ms": round(statistics.median(one)),
        "ten_median_ms": round(statistics.median(ten)),
        "factor": round(statistics.median(ten) / statistics.median(one), 2),
    }


async def delegated(api: Api, cast: Cast, name: str, children: int) -> float:
    """Return the duration of a prompt whose turn starts this many children."""
    markers = [f"{name}child{number}" for number in range(children)]
    cast.plays(name, calls(*(task(marker, id=marker) for marker in markers)))
    for marker in markers:
        cast.plays(marker, thinking)
    session = await api.create()
    began = time.perf_counter()
    await api.ask(session, name)
    return (time.perf_counter() - began) * 1e3


def thinking(request: Request) -> Reply:
    """Return an answer that the model delays."""
    thought = asyncio.Event()
    asyncio.get_running_loop().call_later(THINKS_SECONDS, thought.set)
    return text("done", hold=thought)
