"""Each answer cut and split at every byte: never half a call, never an error of another kind."""

import random

import pytest

from perdure.llm.error import LLMError
from perdure.llm.event import ToolCall, ToolInputInvalid
from perdure.llm.protocols.gemini import GEMINI
from perdure.schema import sse
from tests.contract.llm.gemini.recordings import RECORDINGS, answered, body_of, read
from tests.figures import Figure


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("name", RECORDINGS)
def test_a_split_at_any_byte_changes_nothing(name: str, end: bytes, figure: Figure) -> None:
    body, whole = body_of(RECORDINGS[name], end=end), answered(RECORDINGS[name])
    for at in range(len(body) + 1):
        assert read(body[:at], body[at:]) == whole
    figure("byte offsets, Gemini", len(body))


@pytest.mark.parametrize("name", RECORDINGS)
def test_byte_by_byte_is_the_same_answer(name: str) -> None:
    body = body_of(RECORDINGS[name])
    assert read(*(bytes((byte,)) for byte in body)) == answered(RECORDINGS[name])


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_cut_at_any_byte_fails_without_half_a_call(name: str, figure: Figure) -> None:
    body, whole = body_of(RECORDINGS[name], end=b"\n"), answered(RECORDINGS[name])
    for at in range(len(body)):
        reader, state = sse.Reader(bytes_max=1_000_000), GEMINI.start()
        events = [e for frame in reader.feed(body[:at]) for e in GEMINI.step(state, frame.data)]
        assert events == whole[: len(events)]
        assert not any(isinstance(e, ToolCall) and not e.provider_executed for e in events)
        with pytest.raises(LLMError, match="before it was complete"):
            GEMINI.finish(state)
    figure("byte offsets, Gemini", len(body))


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
