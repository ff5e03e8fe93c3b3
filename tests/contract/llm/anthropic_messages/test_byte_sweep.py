"""Each answer cut and split at every byte: never half a call, never an error of another kind."""

import random

import pytest

from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ToolCall, ToolInputInvalid
from perdure.llm.protocols.anthropic_messages import ANTHROPIC_MESSAGES
from perdure.schema import sse
from tests.contract.llm.anthropic_messages.recordings import RECORDINGS, body_of, step_all
from tests.figures import Figure


def read(*pieces: bytes) -> list[LLMEvent]:
    """All events of a body that arrives in `pieces`, up to its end."""
    reader, state = sse.Reader(bytes_max=1_000_000), ANTHROPIC_MESSAGES.start()
    events: list[LLMEvent] = []
    for piece in pieces:
        for frame in reader.feed(piece):
            events += ANTHROPIC_MESSAGES.step(state, frame.data)
    if not (events and isinstance(events[-1], Finish)):
        events += ANTHROPIC_MESSAGES.finish(state)
    return events


def local_calls(events: list[LLMEvent]) -> list[ToolCall]:
    return [e for e in events if isinstance(e, ToolCall) and not e.provider_executed]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_split_at_any_byte_changes_nothing(name: str, end: bytes, figure: Figure) -> None:
    body, whole = body_of(RECORDINGS[name], end=end), step_all(RECORDINGS[name])
    for at in range(len(body) + 1):
        assert read(body[:at], body[at:]) == whole
    figure("byte offsets, Anthropic", len(body))


@pytest.mark.parametrize("name", RECORDINGS)
def test_byte_by_byte_is_the_same_answer(name: str) -> None:
    body = body_of(RECORDINGS[name])
    assert read(*(bytes((byte,)) for byte in body)) == step_all(RECORDINGS[name])


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_cut_at_any_byte_is_whole_or_fails_without_half_a_call(name: str, figure: Figure) -> None:
    body, whole = body_of(RECORDINGS[name]), step_all(RECORDINGS[name])
    # Up to here the stop reason has come.
    told_why = body.index(b"event: message_stop")
    for at in range(len(body)):
        reader, state = sse.Reader(bytes_max=1_000_000), ANTHROPIC_MESSAGES.start()
        frames = reader.feed(body[:at])
        events = [e for frame in frames for e in ANTHROPIC_MESSAGES.step(state, frame.data)]
        assert events == whole[: len(events)]
        if at >= told_why:
            assert [*events, *ANTHROPIC_MESSAGES.finish(state)] == whole
            continue
        assert local_calls(events) == []
        with pytest.raises(LLMError, match="before it was complete"):
            ANTHROPIC_MESSAGES.finish(state)
    figure("byte offsets, Anthropic", len(body))


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.parametrize("seed", range(100))
def test_damaged_bytes_give_events_or_an_llm_error(name: str, seed: int) -> None:
    chance = random.Random(seed)
    body = bytearray(body_of(RECORDINGS[name]))
    for _ in range(chance.randint(1, 6)):
        body[chance.randrange(len(body))] = chance.randrange(256)
    try:
        events = read(bytes(body))
    except LLMError:
        return
    for event in events:
        if isinstance(event, ToolCall | ToolInputInvalid):
            assert event.name
