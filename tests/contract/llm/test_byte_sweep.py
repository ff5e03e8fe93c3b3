"""Answers split, cut and damaged at every byte: never half a call, never an error of another kind.

How a body is cut up is the frame reader's matter alone: a protocol is given whole frames. So the
frames are compared at every byte, and what comes of them once for each number of frames that came.
"""

import random
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest
from msgspec.structs import replace

from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ProviderError, ToolCall, ToolInputInvalid
from tests.contract.llm.wire import Wire
from tests.contract.llm.wires import WIRES, each_wire
from tests.figures import Figure

FRAME_BYTES_MAX: Final = 1_000_000
EVERYTHING: Final = "everything"
DAMAGES: Final = 300
"""Of the answer that has everything in it, and a third of them of each other one."""

each_recording = pytest.mark.parametrize(
    ("wire", "name"),
    [pytest.param(w, name, id=f"{n}-{name}") for n, w in WIRES.items() for name in w.recordings],
)


@each_recording
def test_byte_by_byte_is_the_same_answer(wire: Wire, name: str) -> None:
    for body in bodies(wire, name):
        pieces = [bytes((byte,)) for byte in body]
        assert read(wire, *pieces) == wire.answered(wire.recordings[name])


@each_recording
def test_at_any_byte_a_split_changes_nothing_and_a_cut_leaves_no_half_call(
    wire: Wire, name: str, figure: Figure
) -> None:
    whole = [*wire.payloads(wire.recordings[name])]
    for body in bodies(wire, name):
        came = {at: split(wire, body, at) for at in range(len(body) + 1)}
        assert [at for at, (first, rest) in came.items() if first + rest != whole] == []
        figure(wire.offsets, len(body))
        left = {at: cut(wire, body, at) for at in range(len(body))}
        assert [at for at, frames in left.items() if frames != whole[: len(frames)]] == []
        for count in sorted({len(frames) for frames in left.values()}):
            check_cut(wire, whole[:count], missing=len(whole) - count, name=name)
        figure(wire.offsets, len(body))


@each_recording
def test_the_last_event_counts_without_its_blank_line(wire: Wire, name: str) -> None:
    for body in bodies(wire, name):
        ends = body.rstrip(b"\r\n") if wire.line_ends else body
        for at in range(len(ends), len(body) + 1):
            assert read(wire, body[:at]) == wire.answered(wire.recordings[name])


@each_recording
def test_damaged_bytes_give_events_or_an_llm_error(wire: Wire, name: str) -> None:
    body = wire.body_of(wire.recordings[name])
    for seed in range(DAMAGES if name == EVERYTHING else DAMAGES // 3):
        with named(f"seed {seed}"):
            check_damaged(wire, damaged(body, random.Random(seed)))


@each_wire("bedrock")
def test_one_wrong_bit_anywhere_is_noticed(wire: Wire) -> None:
    """Its frames have checksums."""
    for name, frames in wire.recordings.items():
        body, chance = wire.body_of(frames), random.Random(name)
        for at in range(len(body)):
            wrong = bytearray(body)
            wrong[at] ^= 1 << chance.randrange(8)
            with named(f"{name}, byte {at}"), pytest.raises(LLMError):
                read(wire, bytes(wrong))


@each_wire("bedrock")
def test_random_bytes_are_no_answer(wire: Wire) -> None:
    for seed in range(DAMAGES):
        with named(f"seed {seed}"), pytest.raises(LLMError):
            read(wire, random.Random(seed).randbytes(seed * 3))


def check_cut(wire: Wire, frames: Sequence[bytes], *, missing: int, name: str) -> None:
    """All but what follows the reason has to come, or the answer has failed."""
    state, whole = wire.protocol.start(), wire.answered(wire.recordings[name])
    events = [event for frame in frames for event in wire.protocol.step(state, frame)]
    assert events == whole[: len(events)]
    if missing < wire.ends.get(name, len(wire.stop(wire.why))):
        ended = [*events, *wire.protocol.finish(state)] if len(events) < len(whole) else events
        counted = wire.counted_at_reason is not None
        assert ended == whole or (not counted and ended == without_usage(whole))
        return
    calls = [e for e in events if isinstance(e, ToolCall) and not e.provider_executed]
    assert wire.calls_early or calls == []
    with pytest.raises(LLMError, match="before it was complete"):
        wire.protocol.finish(state)


def check_damaged(wire: Wire, body: bytes) -> None:
    try:
        events = read(wire, body)
    except LLMError:
        return
    assert all(e.name for e in events if isinstance(e, ToolCall | ToolInputInvalid))


def bodies(wire: Wire, name: str) -> Iterator[bytes]:
    """An answer with each end of a line that its server may write, where it has lines."""
    body = wire.body_of(wire.recordings[name])
    if not wire.line_ends:
        yield body
    for end in wire.line_ends:
        yield body.replace(b"\r\n", b"\n").replace(b"\n", end)


def split(wire: Wire, body: bytes, at: int) -> tuple[list[bytes], list[bytes]]:
    """The frames that come of what stands before that byte, and then of the rest."""
    reader = wire.protocol.frames(FRAME_BYTES_MAX)
    return [*reader.feed(body[:at])], [*reader.feed(body[at:])]


def cut(wire: Wire, body: bytes, at: int) -> list[bytes]:
    """The frames that come of a body that ends at that byte."""
    reader = wire.protocol.frames(FRAME_BYTES_MAX)
    return [*reader.feed(body[:at]), *reader.rest()]


def read(wire: Wire, *pieces: bytes) -> list[LLMEvent]:
    """All events of a body that arrives in `pieces`, up to its end."""
    reader, state = wire.protocol.frames(FRAME_BYTES_MAX), wire.protocol.start()
    events: list[LLMEvent] = []
    for piece in pieces:
        for frame in reader.feed(piece):
            events += wire.protocol.step(state, frame)
    for frame in reader.rest():
        events += wire.protocol.step(state, frame)
    if not (events and isinstance(events[-1], Finish | ProviderError)):
        events += wire.protocol.finish(state)
    return events


def damaged(body: bytes, chance: random.Random) -> bytes:
    wrong = bytearray(body)
    for _ in range(chance.randint(1, 6)):
        wrong[chance.randrange(len(wrong))] = chance.randrange(256)
    return bytes(wrong)


def without_usage(events: Sequence[LLMEvent]) -> list[LLMEvent]:
    *before, last = events
    return [*before, replace(last, usage=None)]


@contextmanager
def named(case: str) -> Generator[None]:
    """Whatever fails inside says which case it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(case)
        raise
