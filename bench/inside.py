"""Measures of single parts inside one process, by CPU time: `python -m bench inside [NAME ...]`.

The other scenarios see a whole server from outside. These say what one part of ours costs, with
nothing else in the way; there is nothing to compare them with but their budgets.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import structs

from perdure.core import system_context
from perdure.core.system_context import Observation
from perdure.host.clock import SystemClock
from perdure.location.context_registry import Subject
from perdure.location.location_map import LocationMap
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from tests.contract.location.place import Place

Measure = Callable[[], Awaitable[dict[str, object]]]
INSIDE: dict[str, Measure] = {}
INSTRUCTION_FILES = 5
SKILLS = 50


def measure(function: Measure) -> Measure:
    INSIDE[function.__name__] = function
    return function


@measure
async def boundary() -> dict[str, object]:
    """Milliseconds to look at every context source when nothing has changed (budget: 1)."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        deepest = furnish(place)
        locations = LocationMap(structs.replace(place.host(), clock=SystemClock()))
        costs = await looks(locations, LocationRef(str(deepest)))
        locations.close()
    return {"median_ms": round(statistics.median(costs), 3), "best_ms": round(min(costs), 3)}


def furnish(place: Place) -> Path:
    """Instruction files on the way up, and skills; the deepest directory."""
    place.git("init")
    place.write(place.home / ".config" / "opencode" / "AGENTS.md", "Be kind.\n")
    deepest = place.project
    for depth in range(INSTRUCTION_FILES - 1):
        deepest = deepest / f"level{depth}" if depth else deepest
        place.write(deepest / "AGENTS.md", f"Rule {depth}.\n" * 50)
    for number in range(SKILLS):
        front = f"---\nname: skill-{number}\ndescription: What {number} is for.\n---\n"
        skill = place.project / ".opencode" / "skills" / f"skill-{number}" / "SKILL.md"
        place.write(skill, front + "Do it.\n" * 100)
    return deepest


async def looks(locations: LocationMap, ref: LocationRef) -> list[float]:
    """What each of many looks cost, in milliseconds of CPU."""

    async def look() -> Observation:
        async with locations.hold(ref) as location:
            agent = location.agents.get("build")
            model = location.catalog.default()
            subject = Subject(session_id=SessionID("ses_bench"), agent=agent, model=model)
            return await location.observe(subject)

    seen = await look()
    # Files that were written just now are not trusted to be unchanged for a moment.
    await asyncio.sleep(3)
    if system_context.initialize(await look()) != system_context.initialize(seen):
        raise RuntimeError("the context changed although nothing did")
    costs: list[float] = []
    for _ in range(300):
        began = time.process_time()
        await look()
        costs.append((time.process_time() - began) * 1e3)
    return costs


async def run(names: list[str]) -> None:
    for name in names or list(INSIDE):
        print(f"== {name}: {INSIDE[name].__doc__}", flush=True)
        for key, value in (await INSIDE[name]()).items():
            print(f"   {key:34} {value}", flush=True)
