"""Measures several servers at the same time, round after round: `python -m bench beside`.

All targets run at once and take turns in short rounds, so that a slowdown of the machine affects
each of them alike. CPU time is that of the server's process, to the nanosecond. The figures are the
medians and the best of the rounds; the factor is the median of the factors of single rounds,
against the first target.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from .client import Stream
from .driver import Bench, Watch
from .fakellm import directive
from .server import Server

CALLS = 10
CROWD = 32


@dataclass
class Contestant:
    """One running server with the Sessions that the rounds use."""

    name: str
    bench: Bench
    pairs: list[tuple[str, Watch]] = field(default_factory=list)
    live: Stream | None = None

    def cpu(self) -> float:
        """Return the CPU milliseconds of the server's own process so far."""
        process = self.bench.server.process
        if process is None:
            raise RuntimeError(f"{self.name} is not running")
        # The clock id that clock_getcpuclockid(3) makes of a process id.
        return time.clock_gettime_ns((~process.pid << 3) | 2) / 1e6

    async def turn(self, text: str, at: int = 0) -> None:
        session, watch = self.pairs[at]
        settled = watch.settled()
        body = {"prompt": {"text": text}}
        await self.bench.client.call("POST", f"/api/session/{session}/prompt", body)
        await asyncio.wait_for(settled, 60)


Round = Callable[[Contestant, int], Awaitable[float]]
"""Runs a round and returns its figure; the number is that of turns."""


async def text(contestant: Contestant, turns: int) -> float:
    """CPU ms of a warm text turn of 50 deltas, with one durable subscriber."""
    began = contestant.cpu()
    for _ in range(turns):
        await contestant.turn(directive(deltas=50))
    return (contestant.cpu() - began) / turns


async def live(contestant: Contestant, turns: int) -> float:
    """CPU ms of the same turn, with a live subscriber too."""
    contestant.live = await contestant.bench.client.sse("/api/event", lambda _: None)
    await contestant.live.opened()
    figure = await text(contestant, turns)
    contestant.live.close()
    return figure


async def tool(contestant: Contestant, turns: int) -> float:
    """CPU ms of one tool call with its model request: turns with ten calls in a row."""
    turns = max(1, turns // CALLS)
    began = contestant.cpu()
    for _ in range(turns):
        await contestant.turn(directive(deltas=5, steps=CALLS))
    return (contestant.cpu() - began) / turns / CALLS


async def crowd(contestant: Contestant, turns: int) -> float:
    """CPU ms of a text turn of 50 deltas in 32 Sessions at once."""
    rounds = max(1, turns // CROWD)
    began = contestant.cpu()
    await _crowd(contestant, rounds)
    return (contestant.cpu() - began) / rounds / CROWD


async def crowd_wall(contestant: Contestant, turns: int) -> float:
    """Wall ms for each text turn of 50 deltas in 32 Sessions at once; its inverse is turns/s."""
    rounds = max(1, turns // CROWD)
    began = time.perf_counter()
    await _crowd(contestant, rounds)
    return (time.perf_counter() - began) * 1e3 / rounds / CROWD


async def _crowd(contestant: Contestant, rounds: int) -> None:
    for _ in range(rounds):
        await asyncio.gather(
            *(contestant.turn(directive(deltas=50), at) for at in range(1, CROWD + 1))
        )


async def create(contestant: Contestant, turns: int) -> float:
    """CPU ms to create a Session."""
    began = contestant.cpu()
    for _ in range(turns):
        await contestant.bench.create()
    return (contestant.cpu() - began) / turns


async def admit(contestant: Contestant, turns: int) -> float:
    """CPU ms to admit a prompt of 1 KB that does not run."""
    session = await contestant.bench.create()
    body = {"prompt": {"text": "x" * 1000}, "resume": False}
    began = contestant.cpu()
    for _ in range(turns):
        await contestant.bench.client.call("POST", f"/api/session/{session}/prompt", body)
    return (contestant.cpu() - began) / turns


ROUNDS: dict[str, Round] = {
    round_.__name__: round_ for round_ in (text, live, tool, crowd, crowd_wall, create, admit)
}


async def measure(servers: list[Server], names: list[str], rounds: int, turns: int) -> None:
    with ExitStack() as stack:
        contestants: list[Contestant] = []
        for server in servers:
            server.reset()
            stack.callback(server.stop)
            contestants.append(
                await _prepare(server, crowded=bool({"crowd", "crowd_wall"} & {*names}))
            )
            stack.callback(contestants[-1].bench.close)
        for name in names or list(ROUNDS):
            print(f"== {name}: {ROUNDS[name].__doc__}", flush=True)
            figures = await _alternate(contestants, ROUNDS[name], rounds, turns)
            for number, contestant in enumerate(contestants):
                own = figures[number]
                factors = [mine / first for mine, first in zip(own, figures[0], strict=True)]
                print(
                    f"   {contestant.name:12} median {statistics.median(own):8.3f}"
                    f"  best {min(own):8.3f}  factor {statistics.median(factors):6.3f}"
                    f"  of the best {min(own) / min(figures[0]):6.3f}",
                    flush=True,
                )


async def _prepare(server: Server, *, crowded: bool) -> Contestant:
    contestant = Contestant(server.target.name, Bench(server, server.names["llm"]))
    await contestant.bench.boot()
    for _ in range(1 + CROWD * crowded):
        contestant.pairs.append(await contestant.bench.fresh(2))
    return contestant


async def _alternate(
    contestants: list[Contestant], round_: Round, rounds: int, turns: int
) -> list[list[float]]:
    figures: list[list[float]] = [[] for _ in contestants]
    for contestant in contestants:
        await round_(contestant, turns)
    for number in range(rounds):
        order = range(len(contestants))
        for at in order if number % 2 == 0 else reversed(order):
            figures[at].append(await round_(contestants[at], turns))
    return figures
