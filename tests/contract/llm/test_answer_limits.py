"""Answers without end, of every wire protocol: too large, too quiet, and compressed to nothing."""

import asyncio
import itertools
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.llm.encoding import provider_json
from perdure.llm.encoding.wire_protocol import WireProtocol
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent, TextDelta
from perdure.llm.http.call_limits import CallLimits
from perdure.llm.http.model_call import model_call
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.llm.route import Route
from perdure.net.transport import HttpRequest, HttpResponse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.testing import ManualClock
from tests.contract.host.loopback import Received
from tests.contract.llm.calling import REQUEST, calling, collect
from tests.contract.llm.wire import Wire
from tests.contract.llm.wires import each_wire
from tests.figures import Figure
from tests.harness.simulation.virtual_loop import VirtualLoop

IDLE: Final = CallLimits(first_byte_seconds_max=60, idle_seconds_max=30)
TICK: Final = 0.5
KIB: Final = 1024
SMALL: Final = CallLimits(answer_bytes_max=256 * KIB, quiet_bytes_max=64 * KIB)


class PacedTransport:
    """A provider that sends one piece after the other, with a pause before each."""

    def __init__(self, pieces: Iterable[bytes], *, seconds: float = 0.0) -> None:
        self._pieces = pieces
        self._seconds = seconds
        self.sent = 0

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        del request
        yield HttpResponse(status=200, headers={}, chunks=self._chunks())

    async def _chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(self._seconds)
            self.sent += len(piece)
            yield piece


class Heard:
    """What came of a call in virtual time, and how long it took."""

    def __init__(self, wire: Wire, transport: PacedTransport, bounds: CallLimits) -> None:
        self.events: list[LLMEvent] = []
        self.error: LLMError | None = None
        loop = VirtualLoop(Random(0))
        route = Route(protocol=wire.protocol, base_url="http://p", model=wire.facts)
        call = model_call(route, transport, ManualClock(), limits=bounds)

        async def listen() -> None:
            try:
                async for batch in call(REQUEST):
                    self.events += batch
            except LLMError as error:
                self.error = error

        loop.run_until_complete(listen())
        self.seconds = loop.time()
        loop.close()

    @property
    def words(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    def failure(self) -> tuple[str, str]:
        assert self.error is not None
        return self.error.reason, self.error.message


def _silent(wire: Wire) -> list[bytes]:
    """Bodies of one frame each, none of which says anything."""
    if not wire.line_ends:
        return [wire.body_of([frame]) for frame in wire.silent]
    return [b"data: " + frame + b"\n\n" for frame in wire.silent]


Habit = Callable[[Wire], Iterator[bytes]]


def _comments(wire: Wire) -> Iterator[bytes]:
    comment = b": keep-alive\n\n" if wire.line_ends else _silent(wire)[0]
    return itertools.repeat(comment)


def _silent_frames(wire: Wire) -> Iterator[bytes]:
    return itertools.cycle(_silent(wire))


def _empty_texts(wire: Wire) -> Iterator[bytes]:
    return itertools.repeat(wire.body_of(wire.text(0, "")[:1]))


def _single_bytes(wire: Wire) -> Iterator[bytes]:
    body = wire.body_of(wire.text(1, "x" * 10_000))
    return (body[at : at + 1] for at in range(len(body)))


def _blank_lines(wire: Wire) -> Iterator[bytes]:
    return itertools.repeat(b"\n\n") if wire.line_ends else _silent_frames(wire)


def _lines_without_data(wire: Wire) -> Iterator[bytes]:
    return itertools.repeat(b"data:\n") if wire.line_ends else _silent_frames(wire)


QUIET: Final[Mapping[str, Habit]] = {
    "comments": _comments,
    "silent frames": _silent_frames,
    "empty texts": _empty_texts,
    "one byte at a time": _single_bytes,
    "blank lines": _blank_lines,
    "lines without data": _lines_without_data,
}


@each_wire()
@pytest.mark.parametrize("habit", QUIET)
@pytest.mark.parametrize("after_words", [False, True])
def test_bytes_that_say_nothing_do_not_keep_an_answer_alive(
    wire: Wire, habit: str, figure: Figure, *, after_words: bool
) -> None:
    begun = [wire.body_of([*wire.begin, *wire.half])] if after_words else []
    transport = PacedTransport(itertools.chain(begun, QUIET[habit](wire)), seconds=TICK)
    heard = Heard(wire, transport, IDLE)
    reason, message = heard.failure()
    assert reason == "timeout"
    assert message.endswith("silent for 30 s, the limit `idle` of its timeouts")
    assert 30 <= heard.seconds <= 30 + 2 * TICK
    assert heard.words == ("half" if after_words else "")
    figure("answers without end", 1)


@each_wire()
def test_an_answer_that_says_a_word_now_and_then_goes_on(wire: Wire) -> None:
    words = [wire.body_of(wire.text(n, f"{n} ")) for n in range(1, 20)]
    frames = [wire.body_of(wire.begin), *words, wire.body_of(wire.stop(wire.why))]
    heard = Heard(wire, PacedTransport(filter(None, frames), seconds=25), IDLE)
    assert heard.error is None
    assert heard.words == "".join(f"{n} " for n in range(1, 20))
    assert heard.seconds > 19 * 25


@each_wire()
def test_an_answer_that_never_ends_is_stopped_at_its_total(wire: Wire, figure: Figure) -> None:
    words = (wire.body_of(wire.text(n, f"{n} ")) for n in itertools.count(1))
    begun = filter(None, [wire.body_of(wire.begin)])
    total = replace(IDLE, total_seconds_max=100)
    heard = Heard(wire, PacedTransport(itertools.chain(begun, words), seconds=7), total)
    reason, message = heard.failure()
    assert (reason, message.endswith("for 100 s, the limit `total` of its timeouts")) == (
        "timeout",
        True,
    )
    assert heard.seconds == pytest.approx(100)
    assert heard.words.startswith("1 2 3 ")
    figure("answers without end", 1)


@each_wire()
def test_the_total_also_bounds_an_answer_that_does_not_begin(wire: Wire) -> None:
    total = replace(IDLE, total_seconds_max=10)
    heard = Heard(wire, PacedTransport([wire.body_of(wire.half)], seconds=20), total)
    assert heard.failure()[0] == "timeout"
    assert heard.seconds == pytest.approx(10)


@each_wire()
def test_the_time_that_events_take_to_be_recorded_is_not_silence(wire: Wire) -> None:
    loop = VirtualLoop(Random(0))
    frames = [
        wire.body_of([*wire.begin, *wire.text(1, "a")]),
        wire.body_of([*wire.text(2, "b"), *wire.stop(wire.why)]),
    ]
    route = Route(protocol=wire.protocol, base_url="http://p", model=wire.facts)
    call = model_call(route, PacedTransport(frames, seconds=20), ManualClock(), limits=IDLE)

    async def listen() -> int:
        batches = 0
        async for _ in call(REQUEST):
            batches += 1
            await asyncio.sleep(25)
        return batches

    assert loop.run_until_complete(listen()) >= 2
    loop.close()


@each_wire()
def test_an_answer_larger_than_allowed_is_stopped_there(wire: Wire, figure: Figure) -> None:
    pieces = (wire.body_of(wire.text(n, "words " * 100)) for n in itertools.count(1))
    begun = filter(None, [wire.body_of(wire.begin)])
    transport = PacedTransport(itertools.chain(begun, pieces))
    heard = Heard(wire, transport, SMALL)
    reason, message = heard.failure()
    assert (reason, heard.error is not None and heard.error.retryable) == (
        "invalid-provider-output",
        False,
    )
    assert "larger than 0.25 MiB" in message
    assert 32 * KIB < len(heard.words) < 256 * KIB
    assert transport.sent < 2 * 256 * KIB
    figure("answers without end", 1)


@each_wire()
@pytest.mark.parametrize("habit", QUIET)
def test_an_answer_that_is_large_and_says_nothing_is_stopped_sooner(
    wire: Wire, habit: str, figure: Figure
) -> None:
    pieces = QUIET[habit](wire)
    if habit == "one byte at a time":
        pieces = itertools.repeat(b"x" * 100)
    transport = PacedTransport(pieces)
    reason, message = Heard(wire, transport, SMALL).failure()
    assert reason == "invalid-provider-output"
    assert "said nothing in 0.0625 MiB" in message or not wire.line_ends
    assert transport.sent < 2 * 64 * KIB
    figure("answers without end", 1)


ENCODINGS: Final[Mapping[str, tuple[str, int]]] = {
    "gzip": ("gzip", 31),
    "x-gzip": ("x-gzip", 31),
    "deflate": ("deflate", 15),
    "deflate without a head": ("deflate", -15),
}


@each_wire()
@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_a_compressed_answer_is_bounded_by_what_it_expands_to(
    wire: Wire, encoding: str, figure: Figure
) -> None:
    """Much in little: the loop goes on while it expands, and the call is stopped early."""
    name, window = ENCODINGS[encoding]
    bomb = await asyncio.to_thread(_bomb, _silent(wire)[0], window)

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(wire, name) + bomb)
        await writer.drain()
        writer.close()

    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    bounds = CallLimits(quiet_bytes_max=KIB * KIB)
    async with calling(lambda url: _route(wire, url), answer, limits=bounds) as (call, _):
        counting = asyncio.create_task(count_turns())
        with pytest.raises(LLMError, match="said nothing in 1 MiB") as stopped:
            await collect(call)
        counting.cancel()
    assert stopped.value.reason == "invalid-provider-output"
    assert turns > KIB * KIB // (64 * KIB)
    figure("answers without end", 1)


@each_wire()
@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip"])
async def test_an_encoding_that_cannot_be_read_is_named_and_not_tried_again(
    wire: Wire, encoding: str
) -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(wire, encoding) + b"\x00" * 1000)
        writer.close()

    async with calling(lambda url: _route(wire, url), answer) as (call, _):
        with pytest.raises(LLMError, match="unknown content encoding") as failed:
            await collect(call)
    assert (failed.value.reason, failed.value.retryable) == ("invalid-provider-output", False)


def _bomb(frames: bytes, window: int) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, window)
    block = frames * (KIB * KIB // len(frames))
    parts = [compressor.compress(block) for _ in range(16)]
    return b"".join(parts) + compressor.flush(zlib.Z_SYNC_FLUSH)


def _head(wire: Wire, encoding: str) -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\ncontent-type: {wire.protocol.accept}\r\n"
        f"content-encoding: {encoding}\r\nconnection: close\r\n\r\n"
    ).encode()


def _route(wire: Wire, url: str) -> Route:
    return Route(protocol=wire.protocol, base_url=url + wire.base_path, model=wire.facts)


@each_wire()
def test_an_error_of_any_size_is_told_in_one_line(wire: Wire) -> None:
    body = wire.body_of([*wire.begin, wire.error("no " * 1_000_000)])
    heard = Heard(wire, PacedTransport([body]), CallLimits())
    message = getattr(heard.events[-1], "message", "")
    assert "no no no" in message
    assert len(message) <= 500


MANY: Final = provider_json.PARTS_MAX + 1


def _chat_frame() -> JsonObject:
    calls = [
        {"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{}"}}
        for n in range(MANY)
    ]
    return {"choices": [{"delta": {"tool_calls": calls}}]}


def _gemini_frame() -> JsonObject:
    return {"candidates": [{"content": {"parts": [{"text": "x"}] * MANY}}]}


def _responses_frame() -> JsonObject:
    content = [{"type": "output_text", "text": "x"}] * (MANY + 1)
    item = {"type": "message", "id": "m", "content": content}
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


@pytest.mark.parametrize(
    ("protocol", "frame"),
    [(OPENAI_CHAT, _chat_frame), (GEMINI, _gemini_frame), (OPENAI_RESPONSES, _responses_frame)],
    ids=["chat", "gemini", "responses"],
)
def test_one_frame_with_more_parts_than_an_answer_may_have_is_refused(
    protocol: WireProtocol, frame: Callable[[], JsonObject]
) -> None:
    with pytest.raises(LLMError, match=r"more than 2,048 ") as refused:
        protocol.step(protocol.start(), codec.encode(frame()))
    assert refused.value.reason == "invalid-provider-output"


def test_the_wire_protocols_know_the_limit_that_they_cannot_import() -> None:
    assert provider_json.PARTS_MAX == limits.ANSWER_PARTS_MAX
