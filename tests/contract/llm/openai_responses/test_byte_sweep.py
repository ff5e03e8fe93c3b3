"""Answers cut and split at every byte: never half a call, never an error of another kind."""

import random

import pytest

from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ProviderError, ToolCall, ToolInputInvalid
from perdure.llm.protocols.openai_responses import OPENAI_RESPONSES
from perdure.schema import sse
from tests.contract.llm.openai_responses.recordings import RECORDINGS, body_of, step_all
from tests.figures import Figure


def read(pieces: list[bytes]) -> list[LLMEvent]:
    """All events of a body that arrives in `pieces`, up to its end."""
    reader, state = sse.Reader(bytes_max=1_000_000), OPENAI_RESPONSES.start()
    events: list[LLMEvent] = []
    for piece in pieces:
        for frame in reader.feed(piece):
            events += OPENAI_RESPONSES.step(state, frame.data)
    if not (events and isinstance(events[-1], Finish | ProviderError)):
        events += OPENAI_RESPONSES.finish(state)
    return events


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_split_at_any_byte_changes_nothing(name: str, figure: Figure) -> None:
    whole, body = step_all(RECORDINGS[name]), body_of(RECORDINGS[name])
    for at in range(len(body) + 1):
        assert read([body[:at], body[at:]]) == whole
    figure("byte offsets, OpenAI Responses", len(body))


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_byte_by_byte_is_the_same_answer(ending: bytes) -> None:
    frames = RECORDINGS["everything"]
    body = body_of(frames, end=ending)
    assert read([bytes((byte,)) for byte in body]) == step_all(frames)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_cut_at_any_byte_fails_and_leaves_only_whole_calls(name: str, figure: Figure) -> None:
    whole, body = step_all(RECORDINGS[name]), body_of(RECORDINGS[name])
    for at in range(len(body)):
        reader, state = sse.Reader(bytes_max=1_000_000), OPENAI_RESPONSES.start()
        events = [e for f in reader.feed(body[:at]) for e in OPENAI_RESPONSES.step(state, f.data)]
        assert events == whole[: len(events)]
        if len(events) < len(whole):
            with pytest.raises(LLMError, match="before it was complete"):
                OPENAI_RESPONSES.finish(state)
    figure("byte offsets, OpenAI Responses", len(body))


@pytest.mark.parametrize("seed", range(300))
def test_damaged_bytes_give_events_or_an_llm_error(seed: int) -> None:
    chance = random.Random(seed)
    body = bytearray(body_of(RECORDINGS["everything"]))
    for _ in range(chance.randint(1, 6)):
        body[chance.randrange(len(body))] = chance.randrange(256)
    try:
        events = read([bytes(body)])
    except LLMError:
        return
    for event in events:
        if isinstance(event, ToolCall | ToolInputInvalid):
            assert event.name
