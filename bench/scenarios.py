"""The scenarios of the benchmark.

Each takes a `Bench` with a stopped server in a new HOME and returns metrics. Names of
metrics end in their unit: `_ms`, `_per_s`, `_mib`, `_bytes`. Less is better, except for
`_per_s` and `_percent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable

from .client import HttpError, Stream
from .driver import Bench, Metrics, Watch, percentile, spread, summary
from .fakellm import directive
from .seed import clone_turns

Scenario = Callable[[Bench], Awaitable[Metrics]]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


@scenario
async def cold_start(bench: Bench) -> Metrics:
    """Process start until the first 200, with a new HOME, an empty database and 1,000 sessions."""
    server = bench.server
    result: Metrics = {}
    health, listed = server.start()
    result |= {"new_home_health_ms": round(health, 1), "new_home_session_ms": round(listed, 1)}
    server.stop()

    async def restarts(name: str) -> None:
        rows, creates, turns = [], [], []
        for _ in range(bench.n(5, 2)):
            rows.append(await bench.boot())
            began = time.perf_counter()
            session = await bench.create()
            creates.append((time.perf_counter() - began) * 1e3)
            watch = await Watch(bench.client, session).open(0)
            turns.append((await bench.turn(session, watch, directive(deltas=5))).overhead)
            watch.close()
            bench.client.close()
            server.stop()
        result.update(
            {
                f"{name}_health_ms": round(statistics.median(row[0] for row in rows), 1),
                f"{name}_health_best_ms": round(min(row[0] for row in rows), 1),
                f"{name}_session_ms": round(statistics.median(row[1] for row in rows), 1),
                f"{name}_session_best_ms": round(min(row[1] for row in rows), 1),
                f"{name}_model_ms": round(statistics.median(row[2] for row in rows), 1),
                f"{name}_first_create_ms": round(statistics.median(creates), 1),
                f"{name}_first_turn_ms": round(statistics.median(turns), 1),
            }
        )

    await restarts("empty")
    await bench.boot()
    count = bench.n(1000, 50)
    await bench.all([bench.create] * count, 16)
    bench.client.close()
    server.stop()
    await restarts(f"sessions{count}")
    return result


@scenario
async def memory(bench: Bench) -> Metrics:
    """MiB: idle, after the first session, after 100 sessions, after 200 turns (20 deltas), peak."""
    server = bench.server
    result: Metrics = {}

    async def note(name: str) -> None:
        await asyncio.sleep(2)
        values = server.memory()
        peak = values.pop("peak_mib")
        result.update({f"{name}_{key}": value for key, value in values.items()})
        result["peak_mib"] = peak

    server.start()
    await note("idle")
    await bench.catalog()
    await bench.create()
    await note("first_session")
    await bench.all([bench.create] * bench.n(99), 8)
    await note("sessions100")
    session, watch = await bench.fresh(0)
    count = bench.n(200, 5)
    for _ in range(count):
        await bench.turn(session, watch, directive(deltas=20))
    watch.close()
    await note(f"turns{count}")
    return result


@scenario
async def prefix(bench: Bench) -> Metrics:
    """Share of a request that begins the next: 200 tool turns, AGENTS.md changed 20 times."""
    await bench.boot()
    turns, changes = bench.n(200, 20), bench.n(20, 4)
    session, watch = await bench.fresh(0)
    await bench.llm.call("POST", "/prefixes", {})
    for number in range(turns):
        if number % (turns // changes) == 0:
            rules = bench.server.project / "AGENTS.md"
            rules.write_text(f"Rule {number}: leave no trace.\n")
        await bench.turn(session, watch, f"turn {number} " + directive(steps=1, deltas=5))
    watch.close()
    shares = await bench.llm.call("GET", "/prefixes")
    return {
        "mean_prefix_percent": round(statistics.mean(shares) * 100, 2),
        "least_prefix_percent": round(min(shares) * 100, 2),
        "broken_prefixes": sum(share < 1 for share in shares),
        "requests": len(shares) + 1,
    }


async def _timed(bench: Bench, payload: bytes, into: list[float]) -> None:
    began = time.perf_counter()
    status, body = await bench.client.raw(payload)
    into.append((time.perf_counter() - began) * 1e3)
    if status >= 300:
        raise HttpError(status, body)


@scenario
async def create(bench: Bench) -> Metrics:
    """POST /api/session: sequentially, then 32 at a time."""
    await bench.boot()
    payload = bench.client.payload("POST", "/api/session", {"model": bench.server.target.model})
    for _ in range(10):
        await _timed(bench, payload, [])
    result: Metrics = {}
    for name, width, count in (("sequential", 1, bench.n(300)), ("concurrent32", 32, bench.n(960))):
        times: list[float] = []
        cpu = bench.server.cpu()
        elapsed = await bench.all([lambda: _timed(bench, payload, times)] * count, width)
        result |= {
            f"{name}_per_s": round(count / elapsed, 1),
            **spread(name, times),
            f"{name}_cpu_ms": round((bench.server.cpu() - cpu) / count, 3),
        }
    return result


@scenario
async def admit(bench: Bench) -> Metrics:
    """POST /prompt, resume:false, 1 KB: sequentially in one session, then 32 sessions at once."""
    await bench.boot()
    body = {"prompt": {"text": "x" * 1000}, "resume": False}
    result: Metrics = {}
    for name, width, count in (
        ("sequential", 1, bench.n(500)),
        ("concurrent32", 32, bench.n(1600)),
    ):
        sessions = [await bench.create() for _ in range(width)]
        payloads = [
            bench.client.payload("POST", f"/api/session/{session}/prompt", body)
            for session in sessions
        ]
        for payload in payloads:
            await _timed(bench, payload, [])
        times: list[float] = []
        cpu, io = bench.server.cpu(), bench.server.io()
        jobs = [lambda p=payloads[i % width]: _timed(bench, p, times) for i in range(count)]
        elapsed = await bench.all(jobs, width)
        result |= {
            f"{name}_per_s": round(count / elapsed, 1),
            **spread(name, times),
            f"{name}_cpu_ms": round((bench.server.cpu() - cpu) / count, 3),
            f"{name}_written_bytes": round((bench.server.io()["wchar"] - io["wchar"]) / count),
        }
    return result


@scenario
async def turn(bench: Bench) -> Metrics:
    """Overhead of a turn beyond the model's time: text, 20 tool calls in a row, 10 at once."""
    await bench.boot()
    await bench.fresh(2)
    result: Metrics = {}
    cases = (
        ("text200", {"deltas": 200}, bench.n(15, 3)),
        ("tools20", {"deltas": 5, "steps": 20, "tool": "read"}, bench.n(4, 2)),
        ("parallel10", {"deltas": 5, "steps": 1, "parallel": 10, "tool": "read"}, bench.n(8, 2)),
    )
    for name, fields, count in cases:
        session, watch = await bench.fresh(1)
        cpu = bench.server.cpu()
        turns = [
            await bench.turn(session, watch, f"{name} " + directive(**fields)) for _ in range(count)
        ]
        result |= summary(name, turns)
        result[f"{name}_cpu_ms"] = round((bench.server.cpu() - cpu) / count, 2)
        watch.close()
    result["tools20_per_call_ms"] = round(result["tools20_overhead_ms"] / 21, 2)
    return result


@scenario
async def concurrency(bench: Bench) -> Metrics:
    """1, 8, 32 and 128 sessions, each running a 50-delta turn at the same time."""
    await bench.boot()
    await bench.fresh(2)
    result: Metrics = {}
    for width in (1, 8, 32, 128):
        if width > bench.n(128, 8):
            break
        rounds = {1: 8, 8: 3, 32: 2, 128: 1}[width]
        pairs = []
        for _ in range(width):
            session = await bench.create()
            pairs.append((session, await Watch(bench.client, session).open(0)))
        latencies: list[float] = []
        text = directive(deltas=50)

        async def one(session: str, watch: Watch) -> None:
            settled = watch.settled()
            began = time.monotonic_ns()
            await bench.client.call(
                "POST", f"/api/session/{session}/prompt", {"prompt": {"text": text}}, 300
            )
            latencies.append((await asyncio.wait_for(settled, 300) - began) / 1e6)

        # One unmeasured round: a session's first turn also builds its context baseline.
        await asyncio.gather(*(one(*pair) for pair in pairs))
        latencies.clear()
        cpu = bench.server.cpu()
        began = time.perf_counter()
        for _ in range(rounds):
            await asyncio.gather(*(one(*pair) for pair in pairs))
        elapsed = time.perf_counter() - began
        count = width * rounds
        result |= {
            f"w{width}_turns_per_s": round(count / elapsed, 2),
            f"w{width}_p50_ms": round(percentile(latencies, 50), 1),
            f"w{width}_p95_ms": round(percentile(latencies, 95), 1),
            f"w{width}_cpu_ms": round((bench.server.cpu() - cpu) / count, 2),
        }
        bench.say(f"    width {width}: {result[f'w{width}_turns_per_s']} turns/s")
        for _, watch in pairs:
            watch.close()
    return result | {"peak_mib": bench.server.memory()["peak_mib"]}


@scenario
async def growth(bench: Bench) -> Metrics:
    """One session with 100, 1,000 and 5,000 past turns: next turn, reads, replay."""
    await bench.boot()
    result: Metrics = {}
    session, watch = await bench.fresh(1)
    await bench.turn(session, watch, directive(deltas=20))
    done = 2
    for size in (100, 1000, 5000):
        if size > bench.n(5000, 100):
            break
        watch = await _grow(bench, session, watch, size - done)
        result |= await _next_turns(bench, session, watch, f"h{size}")
        result |= await _reads(bench, session, watch.seq, f"h{size}")
        result |= await _replays(bench, session, watch.seq, f"h{size}")
        # The copy source must be a text turn again.
        await bench.turn(session, watch, directive(deltas=20), 600)
        done = size + 5
        bench.say(
            f"    {size}: turn {result[f'h{size}_turn_overhead_ms']} ms, "
            f"replay {result[f'h{size}_replay_events_per_s']}/s"
        )
    watch.close()
    return result | {"peak_mib": bench.server.memory()["peak_mib"]}


async def _grow(bench: Bench, session: str, watch: Watch, turns: int) -> Watch:
    if bench.server.target.seeder != "opencode-sqlite":
        for _ in range(turns):
            await bench.turn(session, watch, directive(deltas=20))
        return watch
    watch.close()
    database = next(path for path in bench.server.database_files() if path.suffix == ".db")
    clone_turns(database, session, turns)
    return await Watch(bench.client, session).open(await bench.latest(session))


async def _next_turns(bench: Bench, session: str, watch: Watch, name: str) -> Metrics:
    turns = [await bench.turn(session, watch, directive(deltas=20), 600) for _ in range(3)]
    # Three are too few for a server whose turn is as short as the noise of the machine.
    spare = 2000 - sum(turn.total for turn in turns)
    while spare > 0 and len(turns) < 31:
        turns.append(await bench.turn(session, watch, directive(deltas=20), 600))
        spare -= turns[-1].total
    cpu = bench.server.cpu()
    tools = await bench.turn(session, watch, directive(deltas=5, steps=5), 600)
    return {
        f"{name}_turn_overhead_ms": round(statistics.median(t.overhead for t in turns), 1),
        f"{name}_turn_ack_ms": round(statistics.median(t.ack for t in turns), 1),
        f"{name}_tools5_overhead_ms": round(tools.overhead, 1),
        f"{name}_tools5_cpu_ms": round(bench.server.cpu() - cpu, 1),
    }


async def _reads(bench: Bench, session: str, end: int, name: str) -> Metrics:
    result: Metrics = {}
    root = f"/api/session/{session}"
    for read, path in (
        ("message_page", f"{root}/message"),
        ("context", f"{root}/context"),
        ("history_first", f"{root}/history?after=0&limit=100"),
        ("history_last", f"{root}/history?after={max(0, end - 100)}&limit=100"),
    ):
        times: list[float] = []
        size = 0
        payload = bench.client.payload("GET", path)
        for _ in range(5):
            began = time.perf_counter()
            status, body = await bench.client.raw(payload, 300)
            times.append((time.perf_counter() - began) * 1e3)
            size = len(body)
            if status >= 300:
                raise HttpError(status, body)
        result[f"{name}_{read}_ms"] = round(statistics.median(times), 2)
        result[f"{name}_{read}_bytes"] = size
    return result


async def _replays(bench: Bench, session: str, end: int, name: str) -> Metrics:
    result: Metrics = {}
    rates: list[float] = []
    firsts: list[float] = []
    for _ in range(3):
        reached = asyncio.get_running_loop().create_future()

        def on_event(data: bytes) -> None:
            if data.find(b'"seq":%d,' % end) >= 0 and not reached.done():
                reached.set_result(None)

        cpu = bench.server.cpu()
        began = time.monotonic_ns()
        stream = await bench.client.sse(f"/api/session/{session}/event?after=0", on_event)
        await asyncio.wait_for(reached, 300)
        rates.append(stream.events / ((stream.last - began) / 1e9))
        firsts.append((stream.first - began) / 1e6)
        spent = bench.server.cpu() - cpu
        result[f"{name}_replay_events"] = stream.events
        result[f"{name}_replay_cpu_us"] = round(spent * 1e3 / stream.events, 1)
        stream.close()
    return result | {
        f"{name}_replay_events_per_s": round(statistics.median(rates)),
        f"{name}_replay_first_ms": round(statistics.median(firsts), 1),
    }


@scenario
async def fanout(bench: Bench) -> Metrics:
    """50 subscribers on /api/event during a 1,000-delta turn: no pause, then 1 ms each."""
    await bench.boot()
    session, watch = await bench.fresh(2)
    result: Metrics = {}
    deltas = bench.n(1000, 50)
    for name, delay in (("burst", 0), ("paced", 1000)):
        fields = {"deltas": deltas, "delay_us": delay}
        alone = await bench.turn(session, watch, directive(**fields))
        streams: list[Stream] = []
        lags: list[float] = []
        seen = [0] * 50

        def subscriber(index: int) -> Callable[[bytes], None]:
            def on_event(data: bytes) -> None:
                if b"session.next.text.delta" in data[:400]:
                    seen[index] += 1
                    if index % 10 == 0:
                        lags.append(time.time() * 1e3 - json.loads(data)["data"]["timestamp"])

            return on_event

        for index in range(50):
            stream = await bench.client.sse("/api/event", subscriber(index))
            await stream.opened()
            streams.append(stream)
        await asyncio.sleep(0.5)
        cpu = bench.server.cpu()
        began = time.monotonic_ns()
        crowded = await bench.turn(session, watch, directive(**fields))
        for _ in range(100):
            await asyncio.sleep(0.05)
            if all(
                count >= deltas
                for count, stream in zip(seen, streams, strict=True)
                if not stream.closed
            ):
                break
        last = max(
            [stream.last for stream in streams if stream.events > 1], default=time.monotonic_ns()
        )
        events = sum(stream.events - 1 for stream in streams)
        result |= {
            f"{name}_alone_ms": round(alone.overhead, 1),
            f"{name}_crowded_ms": round(crowded.overhead, 1),
            f"{name}_added_ms": round(crowded.overhead - alone.overhead, 1),
            f"{name}_delivered_events": events,
            f"{name}_delivered_per_s": round(events / ((last - began) / 1e9)),
            f"{name}_lost_streams": sum(stream.closed for stream in streams),
            f"{name}_complete_streams": sum(count >= deltas for count in seen),
            f"{name}_lag_p50_ms": round(percentile(lags, 50), 1),
            f"{name}_lag_p95_ms": round(percentile(lags, 95), 1),
            f"{name}_cpu_ms": round(bench.server.cpu() - cpu, 1),
        }
        for stream in streams:
            stream.close()
        await asyncio.sleep(0.5)
    watch.close()
    return result


@scenario
async def stalled_reader(bench: Bench) -> Metrics:
    """2,000-delta turns that one reader follows, alternately with and without one that stalls."""
    await bench.boot()
    session, watch = await bench.fresh(2)
    follower = await bench.client.sse("/api/event", lambda data: None)
    await follower.opened()
    fields = directive(deltas=bench.n(2000, 200))
    alone: list[float] = []
    stalled: list[float] = []
    for _ in range(bench.n(8, 2)):
        alone.append((await bench.turn(session, watch, fields)).overhead)
        stream = await _unread(bench, "/api/event")
        stalled.append((await bench.turn(session, watch, fields)).overhead)
        stream.close()
    follower.close()
    watch.close()
    before, after = statistics.median(alone), statistics.median(stalled)
    return {
        "alone_ms": round(before, 1),
        "stalled_ms": round(after, 1),
        "added_ms": round(after - before, 1),
        "slower_by_ratio": round(after / before - 1, 3),
    }


async def _unread(bench: Bench, path: str) -> Stream:
    """Open a stream, read the start of its answer, and leave the rest in the socket."""
    stream = await bench.client.sse(path, lambda data: None)
    await stream.opened()
    if stream.connection.transport is not None:
        stream.connection.transport.pause_reading()
    return stream


@scenario
async def disk(bench: Bench) -> Metrics:
    """Durable bytes per 50-delta turn and per tool call; bytes written; fsyncs under strace."""
    server = bench.server
    result: Metrics = {}

    def settle() -> int:
        server.stop()
        for path in server.database_files():
            if path.suffix == ".db":  # fold what is left in the WAL into the database itself
                with contextlib.closing(sqlite3.connect(path)) as db:
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return server.database_bytes()

    await bench.boot()
    session, watch = await bench.fresh(2)
    watch.close()
    bench.client.close()
    before = settle()
    await bench.boot()
    watch = await Watch(bench.client, session).open(await bench.latest(session))
    count = bench.n(50, 5)
    io = server.io()
    for _ in range(count):
        await bench.turn(session, watch, directive(deltas=50))
    now = server.io()
    result |= {
        "turn_wchar_bytes": round((now["wchar"] - io["wchar"]) / count),
        "turn_storage_bytes": round((now["write_bytes"] - io["write_bytes"]) / count),
        "turn_write_calls": round((now["syscw"] - io["syscw"]) / count, 1),
    }
    watch.close()
    bench.client.close()
    after = settle()
    result["turn_database_bytes"] = round((after - before) / count)
    await bench.boot()
    watch = await Watch(bench.client, session).open(await bench.latest(session))
    tools = bench.n(5, 2)
    for _ in range(tools):
        await bench.turn(session, watch, directive(deltas=5, steps=10))
    watch.close()
    bench.client.close()
    result["tool_call_database_bytes"] = round((settle() - after) / (tools * 10))
    if shutil.which("strace"):
        trace = server.root / "strace.txt"
        calls = "fsync,fdatasync,pwrite64,pwritev,pwritev2,sync_file_range"
        await bench.boot(
            ["strace", "-f", "--seccomp-bpf", "-o", str(trace), "-e", f"trace={calls}"]
        )
        session, watch = await bench.fresh(2)
        offset = trace.stat().st_size
        for _ in range(10):
            await bench.turn(session, watch, directive(deltas=50))
        await asyncio.sleep(0.5)
        with trace.open("rb") as file:
            file.seek(offset)
            lines = file.read().decode(errors="replace")
        watch.close()
        bench.client.close()
        server.stop()
        for call in ("fsync", "fdatasync", "pwrite64"):
            result[f"turn_{call}_calls"] = round(len(re.findall(rf"\b{call}\(", lines)) / 10, 1)
        written = [int(size) for size in re.findall(r"pwrite64\([^\n]*= (\d+)", lines)]
        result["turn_pwrite_bytes"] = round(sum(written) / 10)
    return result
