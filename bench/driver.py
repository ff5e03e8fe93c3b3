"""Drives a server under test through the contract alone.

A turn has ended when the durable stream shows `step.ended` with a finish that is not a tool call.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from .client import Client, HttpError, Stream
from .fakellm import directive
from .server import Server

Metrics = dict[str, object]


def percentile(values: Iterable[float], q: float) -> float:
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q / 100 * len(ordered)) - 1))]


def spread(name: str, values: list[float]) -> Metrics:
    return {f"{name}_p{q}_ms": round(percentile(values, q), 3) for q in (50, 95, 99)}


@dataclass
class Turn:
    """One finished turn; times in ms."""

    total: float  # POST sent -> final step settled, seen on the durable stream
    llm: float  # time that the fake model itself needed, all provider turns together
    ack: float  # POST sent -> 200
    to_llm: float  # POST sent -> first provider request arrived at the model
    settle: float  # model's last byte -> final step settled
    events: int

    @property
    def overhead(self) -> float:
        return self.total - self.llm


class Watch:
    """Follows a session's durable event stream and notifies when a turn has settled."""

    def __init__(self, client: Client, session: str) -> None:
        self.client, self.session = client, session
        self.stream: Stream | None = None
        self.seq = 0
        self.waiter: asyncio.Future | None = None

    async def open(self, after: int) -> Watch:
        self.seq = after
        self.stream = await self.client.sse(
            f"/api/session/{self.session}/event?after={after}", self._event
        )
        # A server may send its headers with the first event.
        with contextlib.suppress(TimeoutError):
            await self.stream.opened(0.25)
        return self

    def _event(self, data: bytes) -> None:
        if b"session.next.step." not in data[:400]:
            return
        event = json.loads(data)
        kind = event["type"]
        self.seq = event["durable"]["seq"]
        if kind == "session.next.step.failed":
            outcome: object = RuntimeError(f"step failed: {event['data'].get('error')}")
        elif kind == "session.next.step.ended" and event["data"].get("finish") != "tool-calls":
            outcome = time.monotonic_ns()
        else:
            return
        if self.waiter is not None and not self.waiter.done():
            if isinstance(outcome, Exception):
                self.waiter.set_exception(outcome)
            else:
                self.waiter.set_result(outcome)

    def settled(self) -> asyncio.Future:
        self.waiter = asyncio.get_running_loop().create_future()
        return self.waiter

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()


class Bench:
    def __init__(
        self, server: Server, llm: str, scale: float = 1.0, say: Callable[[str], None] = print
    ) -> None:
        self.server, self.scale, self.say = server, scale, say
        self.client = Client(server.base, server.target.headers)
        self.llm = Client(llm)

    def n(self, count: int, least: int = 1) -> int:
        return max(least, round(count * self.scale))

    def close(self) -> None:
        self.client.close()
        self.llm.close()

    # ---- contract -----------------------------------------------------------------------------

    async def boot(self, prefix: list[str] | None = None) -> tuple[float, float, float]:
        """Starts the server; returns ms until /api/health, /api/session and the listed model.

        The last matters: opencode fills its catalog in the background and drops (promotes, then
        fails without any event) a prompt that comes before its model is there.
        """
        self.client.close()
        began = time.monotonic_ns()
        health, listed = self.server.start(prefix)
        await self.catalog()
        return health, listed, (time.monotonic_ns() - began) / 1e6

    async def catalog(self) -> None:
        """Waits until the server lists the model under test."""
        wanted, began = self.server.target.model, time.monotonic_ns()
        while True:
            models = await self.client.call("GET", "/api/model")
            if any(
                m["id"] == wanted["id"] and m["providerID"] == wanted["providerID"]
                for m in models["data"]
            ):
                return
            if time.monotonic_ns() - began > 60e9:
                raise TimeoutError("the model is not in the catalog")
            await asyncio.sleep(0.01)

    async def create(self, timeout: float = 60) -> str:
        reply = await self.client.call(
            "POST", "/api/session", {"model": self.server.target.model}, timeout
        )
        return reply["data"]["id"]

    async def latest(self, session: str) -> int:
        """Returns the sequence of the last durable event; 0 for a fresh session."""
        after = 0
        while True:
            page = await self.client.call(
                "GET", f"/api/session/{session}/history?after={after}&limit=100"
            )
            if page["data"]:
                after = page["data"][-1]["durable"]["seq"]
            if not page["hasMore"]:
                return after

    async def turn(self, session: str, watch: Watch, text: str, timeout: float = 300) -> Turn:
        await self.llm.call("POST", "/stats/reset", {})
        before = watch.stream.events if watch.stream else 0
        settled = watch.settled()
        payload = self.client.payload(
            "POST", f"/api/session/{session}/prompt", {"prompt": {"text": text}}
        )
        began = time.monotonic_ns()
        status, body = await self.client.raw(payload, timeout)
        acked = time.monotonic_ns()
        if status >= 300:
            raise HttpError(status, body)
        ended = await asyncio.wait_for(settled, timeout)
        log = (await self.llm.call("GET", "/stats"))["log"]
        busy = sum(row[2] - row[0] for row in log) / 1e6
        return Turn(
            total=(ended - began) / 1e6,
            llm=busy,
            ack=(acked - began) / 1e6,
            to_llm=(log[0][0] - began) / 1e6 if log else math.nan,
            settle=(ended - log[-1][2]) / 1e6 if log else math.nan,
            events=(watch.stream.events if watch.stream else 0) - before,
        )

    async def fresh(self, warm: int = 1) -> tuple[str, Watch]:
        """Creates and follows a session, and runs `warm` small turns in it."""
        session = await self.create()
        watch = await Watch(self.client, session).open(0)
        for _ in range(warm):
            await self.turn(session, watch, "warm up " + directive(deltas=5))
        return session, watch

    async def all(self, jobs: list[Callable[[], Awaitable[None]]], width: int) -> float:
        """Runs the jobs `width` at a time; returns seconds."""
        queue = iter(jobs)

        async def worker() -> None:
            for job in queue:
                await job()

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(width)))
        return time.perf_counter() - began


def summary(prefix: str, turns: list[Turn]) -> Metrics:
    def pick(key: str) -> list[float]:
        return [getattr(turn, key) for turn in turns]

    return {
        f"{prefix}_overhead_ms": round(statistics.median(pick("overhead")), 2),
        f"{prefix}_overhead_best_ms": round(min(pick("overhead")), 2),
        f"{prefix}_total_ms": round(statistics.median(pick("total")), 2),
        f"{prefix}_llm_ms": round(statistics.median(pick("llm")), 2),
        f"{prefix}_ack_ms": round(statistics.median(pick("ack")), 2),
        f"{prefix}_to_llm_ms": round(statistics.median(pick("to_llm")), 2),
        f"{prefix}_settle_ms": round(statistics.median(pick("settle")), 2),
        f"{prefix}_durable_events": round(statistics.median(pick("events"))),
    }
