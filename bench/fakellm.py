"""A fast fake of an OpenAI-compatible streaming model (`POST .../chat/completions`).

It never parses the request body. The *last* directive in the raw bytes of the request, which a
scenario puts in the text of its prompt, decides the answer:

    [[bench deltas=200 steps=20 parallel=1 tool=read path=small.txt delay_us=0 chunk=1]]

    steps     provider turns that ask for tools before the closing text (0 = text only)
    parallel  tool calls in each of those turns
    deltas    text deltas of the closing reply (each `size` characters)
    chunk     deltas in one socket write (1 = the usual one-token-per-packet stream)
    delay_us  pause between two writes, microseconds

The number of past provider turns is the number of `"role":"tool"` messages after the directive,
divided by `parallel`: the fake keeps no state between requests, so any number of sessions can use
it.

    POST /prefixes     begin to compare each request that offers tools with the one before
    GET  /prefixes     [share, ...]: the share of the previous request that each began with
    GET  /stats        {"requests", "busy_ns", "bytes_in", "bytes_out",
                        "log": [[t0, t1, t2, in, out], ...]}
    POST /stats/reset

`t0` is the arrival of the first byte of a request, `t1` of its last byte, `t2` the write of the
last byte of the reply, all in CLOCK_MONOTONIC nanoseconds, as the client's clock is.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import json
import re
import time
from itertools import takewhile

DIRECTIVE = re.compile(rb"\[\[bench ([^\]]*)\]\]")
ROLE_TOOL = re.compile(rb'"role"\s*:\s*"tool"')
DEFAULTS = {
    "deltas": 1,
    "steps": 0,
    "parallel": 1,
    "tool": "read",
    "path": "small.txt",
    "delay_us": 0,
    "chunk": 1,
    "size": 4,
}
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
LOG_LIMIT = 100_000


def directive(**fields: object) -> str:
    """Returns the text that makes the fake model answer in the given way."""
    unknown = fields.keys() - DEFAULTS.keys()
    if unknown:
        raise ValueError(f"unknown directive fields: {sorted(unknown)}")
    return "[[bench " + " ".join(f"{key}={value}" for key, value in fields.items()) + "]]"


def _frame(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def _event(delta: dict, finish: str | None = None, usage: dict | None = None) -> bytes:
    body: dict = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    if usage is not None:
        body["usage"] = usage
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def _usage(output: int) -> dict:
    return {"prompt_tokens": 10, "completion_tokens": output, "total_tokens": 10 + output}


@functools.lru_cache(maxsize=256)
def _text_reply(deltas: int, size: int, chunk: int) -> tuple[bytes, ...]:
    words = [f"w{i}".ljust(size - 1, "x")[: size - 1] + " " for i in range(deltas)]
    events = [_event({"role": "assistant", "content": ""})]
    events += [_event({"content": word}) for word in words]
    groups = [b"".join(events[i : i + chunk]) for i in range(0, len(events), chunk)]
    tail = _event({}, "stop", _usage(deltas)) + b"data: [DONE]\n\n"
    return (*(_frame(group) for group in groups), _frame(tail) + b"0\r\n\r\n")


@functools.lru_cache(maxsize=256)
def _tool_reply(tool: str, path: str, parallel: int, step: int) -> tuple[bytes, ...]:
    events = [_event({"role": "assistant", "content": None})]
    for index in range(parallel):
        # Each call differs because a server may ask a person about repeated calls.
        read = {"path": path, "limit": 1000 + step * parallel + index}
        arguments = json.dumps({"pattern": path} if tool == "glob" else read)
        call = {
            "index": index,
            "id": f"call_{step}_{index}",
            "type": "function",
            "function": {"name": tool, "arguments": arguments},
        }
        events.append(_event({"tool_calls": [call]}))
    tail = _event({}, "tool_calls", _usage(parallel)) + b"data: [DONE]\n\n"
    return (*(_frame(event) for event in events), _frame(tail) + b"0\r\n\r\n")


@functools.lru_cache(maxsize=1024)
def _fields(raw: bytes) -> dict:
    fields = dict(DEFAULTS)
    for item in raw.decode().split():
        key, _, value = item.partition("=")
        fields[key] = value if key in ("tool", "path") else int(value)
    return fields


def plan(body: bytes) -> tuple[tuple[bytes, ...], int]:
    """Returns the socket writes that answer one request, and the pause between them in us."""
    start = body.rfind(b"[[bench ")
    match = DIRECTIVE.match(body, start) if start >= 0 else None
    fields = _fields(match.group(1)) if match else DEFAULTS
    steps, parallel = fields["steps"], fields["parallel"]
    if steps:
        step = len(ROLE_TOOL.findall(body, match.end())) // parallel
        if step < steps:
            return _tool_reply(fields["tool"], fields["path"], parallel, step), fields["delay_us"]
    return _text_reply(fields["deltas"], fields["size"], fields["chunk"]), fields["delay_us"]


class Stats:
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.requests = self.busy = self.bytes_in = self.bytes_out = 0
        self.log: list[tuple[int, int, int, int, int]] = []

    def add(self, times: tuple[int, int, int], *, received: int, sent: int) -> None:
        self.requests += 1
        self.busy += times[2] - times[1]
        self.bytes_in += received
        self.bytes_out += sent
        if len(self.log) < LOG_LIMIT:
            self.log.append((*times, received, sent))

    def dump(self) -> bytes:
        return json.dumps(
            {
                "requests": self.requests,
                "busy_ns": self.busy,
                "bytes_in": self.bytes_in,
                "bytes_out": self.bytes_out,
                "log": self.log,
            }
        ).encode()


class Prefixes:
    """Returns what a provider could cache of the request: tools, then message by message."""

    def __init__(self) -> None:
        self.shares: list[float] | None = None
        self._before: list[str] = []

    def begin(self) -> None:
        self.shares, self._before = [], []

    def add(self, body: bytes) -> None:
        request = json.loads(body)
        # Side requests, such as for a title, have no tools and are another conversation.
        if self.shares is None or not request.get("tools"):
            return
        units = [json.dumps(unit) for unit in (request["tools"], *request["messages"])]
        if self._before:
            shared = 0
            for unit, before in zip(units, self._before, strict=False):
                same = takewhile(lambda pair: pair[0] == pair[1], zip(unit, before, strict=False))
                shared += len(before) if unit == before else sum(1 for _ in same)
                if unit != before:
                    break
            self.shares.append(shared / sum(map(len, self._before)))
        self._before = units


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests on it are answered in order."""

    def __init__(self, stats: Stats, prefixes: Prefixes) -> None:
        self.stats = stats
        self.prefixes = prefixes
        self.buffer = bytearray()
        self.need = -1
        self.chunked = False
        self.first = 0
        self.tasks: set[asyncio.Task] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.buffer:
            self.first = time.monotonic_ns()
        self.buffer += data
        while self._take():
            pass

    def _take(self) -> bool:
        if self.need < 0:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = bytes(self.buffer[:end])
            lower = head.lower()
            self.start = end + 4
            self.line = head.split(b"\r\n", 1)[0]
            self.chunked = b"transfer-encoding: chunked" in lower
            found = re.search(rb"content-length:\s*(\d+)", lower)
            self.need = self.start + (int(found.group(1)) if found else 0)
        if self.chunked:
            end = self.buffer.find(b"0\r\n\r\n", self.start)
            if end < 0:
                return False
            self.need = end + 5
        if len(self.buffer) < self.need:
            return False
        body = bytes(self.buffer[self.start : self.need])
        received = self.need
        del self.buffer[: self.need]
        self.need = -1
        self._answer(body, received)
        return bool(self.buffer)

    def _answer(self, body: bytes, received: int) -> None:
        method, path, _ = self.line.split(b" ", 2)
        if path.endswith(b"/chat/completions"):
            arrived = time.monotonic_ns()
            writes, delay = plan(body)
            if self.prefixes.shares is not None:
                self.prefixes.add(body)
            if delay:
                task = asyncio.ensure_future(self._slow(writes, delay, arrived, received))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
                return
            write = self.transport.write
            write(HEAD + writes[0])
            for piece in writes[1:]:
                write(piece)
            times = (self.first, arrived, time.monotonic_ns())
            self.stats.add(times, received=received, sent=sum(map(len, writes)))
        elif path == b"/stats/reset":
            self.stats.reset()
            self._json(b"{}")
        elif path == b"/prefixes" and method == b"POST":
            self.prefixes.begin()
            self._json(b"{}")
        elif path == b"/prefixes":
            self._json(json.dumps(self.prefixes.shares or []).encode())
        elif path == b"/stats":
            self._json(self.stats.dump())
        else:
            self._json(b'{"object":"list","data":[{"id":"fake-model","object":"model"}]}')

    async def _slow(
        self, writes: tuple[bytes, ...], delay: int, arrived: int, received: int
    ) -> None:
        first = self.first
        self.transport.write(HEAD)
        for piece in writes:
            self.transport.write(piece)
            await asyncio.sleep(delay / 1e6)
        times = (first, arrived, time.monotonic_ns())
        self.stats.add(times, received=received, sent=sum(map(len, writes)))

    def _json(self, payload: bytes) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (len(payload), payload)
        )


async def serve(host: str, port: int) -> None:
    stats, prefixes = Stats(), Prefixes()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(stats, prefixes), host, port, backlog=1024)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=4212)
    options = parser.parse_args()
    gc.freeze()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.host, options.port))


if __name__ == "__main__":
    main()
