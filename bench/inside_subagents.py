"""Measures many subagents at work at once: `python -m bench inside subagents`."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from bench.inside import measure
from tests.acceptance.session_scripts import SessionScripts, task
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Reply, Request, calls, scripted_provider, text

CHILDREN = 10
ROUNDS = 5
THINKS_SECONDS = 0.3


@measure
async def subagents() -> dict[str, object]:
    """Milliseconds until one child of a turn is done, and until ten are (budget: 2x)."""
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_provider() as provider:
            scripts = SessionScripts(provider)
            async with running(make_folders(Path(folder), provider)) as instance:
                await delegated(instance.api, scripts, "warm", 1)
                one = [await delegated(instance.api, scripts, f"a{n}", 1) for n in range(ROUNDS)]
                ten = [
                    await delegated(instance.api, scripts, f"b{n}", CHILDREN) for n in range(ROUNDS)
                ]
    return {
        "one_median_ms": round(statistics.median(one)),
        "ten_median_ms": round(statistics.median(ten)),
        "factor": round(statistics.median(ten) / statistics.median(one), 2),
    }


async def delegated(api: Api, scripts: SessionScripts, name: str, children: int) -> float:
    """How long a prompt takes whose turn has so many children do something."""
    markers = [f"{name}child{number}" for number in range(children)]
    scripts.add(name, calls(*(task(marker, id=marker) for marker in markers)))
    for marker in markers:
        scripts.add(marker, thinking)
    session = await api.create()
    began = time.perf_counter()
    await api.ask(session, name)
    return (time.perf_counter() - began) * 1e3


def thinking(request: Request) -> Reply:
    """Return an answer that the model delays."""
    thought = asyncio.Event()
    asyncio.get_running_loop().call_later(THINKS_SECONDS, thought.set)
    return text("done", hold=thought)
