"""Scenarios of the V1 routes, which most published clients speak.

The original answers V1 and V2 from one process, and so does Perdure. A V1 turn ends with
`session.idle` on the V1 event stream.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable

from .client import Stream
from .driver import Bench, Metrics
from .fakellm import directive
from .scenarios import Scenario

SUBSCRIBERS = 50
DELTA = b'"message.part.delta"'


class V1Client:
    """One V1 Session, followed on the V1 event stream."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.session = ""
        self.stream: Stream | None = None
        self.idle: asyncio.Future[int] | None = None

    async def open(self, path: str = "/event") -> V1Client:
        made = await self.bench.client.call("POST", "/session", {})
        self.session = made["id"]
        self.stream = await self.bench.client.sse(path, self._event)
        await self.stream.opened()
        return self

    async def turn(self, text: str, timeout: float = 300) -> None:
        self.idle = asyncio.get_running_loop().create_future()
        model = self.bench.server.target.model
        body = {
            "model": {"providerID": model["providerID"], "modelID": model["id"]},
            "parts": [{"type": "text", "text": text}],
        }
        path = f"/session/{self.session}/prompt_async"
        status, _ = await self.bench.client.raw(
            self.bench.client.payload("POST", path, body), timeout
        )
        assert status == 204, status
        await asyncio.wait_for(self.idle, timeout)

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()

    def _event(self, data: bytes) -> None:
        head = data[:400]
        if self.session.encode() not in data or self.idle is None or self.idle.done():
            return
        if b'"session.error"' in head:
            self.idle.set_exception(RuntimeError(f"the turn failed: {data[:300]!r}"))
        elif b'"session.idle"' in head:
            self.idle.set_result(time.monotonic_ns())


class V2Client(V1Client):
    """One V2 Session, followed on the live event stream of V2."""

    tells_status = False

    async def open(self, path: str = "/api/event") -> V1Client:
        self.session = await self.bench.create()
        self.stream = await self.bench.client.sse(path, self._event)
        await self.stream.opened()
        return self

    async def turn(self, text: str, timeout: float = 300) -> None:
        self.tells_status = False
        self.idle = asyncio.get_running_loop().create_future()
        path = f"/api/session/{self.session}/prompt"
        await self.bench.client.call("POST", path, {"prompt": {"text": text}}, timeout)
        await asyncio.wait_for(self.idle, timeout)

    def _event(self, data: bytes) -> None:
        """The turn is over when the Session is idle, as for V1, if the server tells that."""
        head = data[:400]
        if self.idle is None or self.idle.done() or self.session.encode() not in data:
            return
        if b'"session.status"' in head:
            self.tells_status = True
            if b'"idle"' in data:
                self.idle.set_result(time.monotonic_ns())
        elif b"session.next.step.ended" in head and not self.tells_status:
            self.idle.set_result(time.monotonic_ns())


async def v1_turn(bench: Bench) -> Metrics:
    """CPU of a 200-delta turn by V1 with one V1 subscriber, and by V2 with one of V2, in turns."""
    await bench.boot()
    await bench.fresh(2)
    costs: dict[str, list[float]] = {"v1": [], "v2": []}
    turns = bench.n(20, 5)
    for _ in range(bench.n(7, 3)):
        for name, kind in (("v1", V1Client), ("v2", V2Client)):
            client = await kind(bench).open()
            await client.turn("warm up " + directive(deltas=5))
            cpu = bench.server.cpu()
            for _ in range(turns):
                await client.turn(directive(deltas=200))
            costs[name].append((bench.server.cpu() - cpu) / turns)
            client.close()
    # The mean of all rounds: the kernel counts in steps of 10 ms, too coarse for one round.
    v1, v2 = (statistics.fmean(costs[name]) for name in ("v1", "v2"))
    # The number says how many times a turn of V2 one of V1 costs; the budget is 1.15.
    return {"v1_cpu_ms": round(v1, 2), "v2_cpu_ms": round(v2, 2), "v1_times_v2": round(v1 / v2, 3)}


async def v1_fanout(bench: Bench) -> Metrics:
    """50 subscribers on the V1 event stream during a 1,000-delta turn without pauses."""
    await bench.boot()
    await bench.fresh(2)
    client = await V1Client(bench).open()
    await client.turn("warm up " + directive(deltas=5))
    deltas = bench.n(1000, 50)
    seen = [0] * SUBSCRIBERS
    streams: list[Stream] = []

    def subscriber(index: int) -> Callable[[bytes], None]:
        def on_event(data: bytes) -> None:
            if DELTA in data[:400]:
                seen[index] += 1

        return on_event

    for index in range(SUBSCRIBERS):
        stream = await bench.client.sse("/event", subscriber(index))
        await stream.opened()
        streams.append(stream)
    await asyncio.sleep(0.5)
    before = sum(stream.events for stream in streams)
    cpu = bench.server.cpu()
    began = time.monotonic_ns()
    await client.turn(directive(deltas=deltas))
    for _ in range(200):
        if all(count >= deltas for count in seen):
            break
        await asyncio.sleep(0.05)
    last = max(stream.last for stream in streams)
    events = sum(stream.events for stream in streams) - before
    result: Metrics = {
        "delivered_events": events,
        "delivered_per_s": round(events / ((last - began) / 1e9)),
        "complete_streams": sum(count >= deltas for count in seen),
        "cpu_ms": round(bench.server.cpu() - cpu, 1),
    }
    for stream in streams:
        stream.close()
    client.close()
    return result


V1_SCENARIOS: dict[str, Scenario] = {"v1_turn": v1_turn, "v1_fanout": v1_fanout}
