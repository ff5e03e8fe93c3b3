"""One answer cut and split at every byte: never half a call, never an error of another kind."""

import random

import pytest

from perdure.llm.error import LLMError
from perdure.llm.event import Finish, LLMEvent, ToolCall, ToolInputInvalid
from perdure.llm.protocols.openai_chat import OPENAI_CHAT
from perdure.schema import sse
from tests.contract.llm.openai_chat.recordings import EVERYTHING, body_of, step_all
from tests.figures import Figure

WHOLE = step_all(EVERYTHING)
CALLS = [event for event in WHOLE if isinstance(event, ToolCall)]
BODIES = {
    "lf": body_of(EVERYTHING),
    "crlf": body_of(EVERYTHING, end=b"\r\n\r\n"),
    "cr": body_of(EVERYTHING, end=b"\r\r"),
}


def read(pieces: list[bytes]) -> list[LLMEvent]:
    """All events of a body that arrives in `pieces`, up to its end."""
    reader, state = sse.Reader(bytes_max=1_000_000), OPENAI_CHAT.start()
    events: list[LLMEvent] = []
    for piece in pieces:
        for frame in reader.feed(piece):
            events += OPENAI_CHAT.step(state, frame.data)
    if not (events and isinstance(events[-1], Finish)):
        events += OPENAI_CHAT.finish(state)
    return events


@pytest.mark.parametrize("ending", BODIES)
def test_a_split_at_any_byte_changes_nothing(ending: str, figure: Figure) -> None:
    body = BODIES[ending]
    # A lone CR at the very end may be half of CRLF: only what follows it tells.
    tail = b"\n" if ending == "cr" else b""
    for at in range(len(body) + 1):
        assert read([body[:at], body[at:] + tail]) == WHOLE
    figure("byte offsets, OpenAI Chat", len(body))


def test_byte_by_byte_is_the_same_answer() -> None:
    assert read([bytes((byte,)) for byte in BODIES["crlf"]]) == WHOLE


@pytest.mark.parametrize("ending", BODIES)
def test_a_cut_at_any_byte_is_whole_or_fails_without_half_a_call(
    ending: str, figure: Figure
) -> None:
    body = BODIES[ending]
    for at in range(len(body)):
        reader, state = sse.Reader(bytes_max=1_000_000), OPENAI_CHAT.start()
        events = [e for f in reader.feed(body[:at]) for e in OPENAI_CHAT.step(state, f.data)]
        calls = [event for event in events if isinstance(event, ToolCall)]
        assert calls in ([], CALLS)
        if not calls:
            with pytest.raises(LLMError, match="before it was complete"):
                OPENAI_CHAT.finish(state)
        elif not isinstance(events[-1], Finish):
            assert isinstance(OPENAI_CHAT.finish(state)[-1], Finish)
    figure("byte offsets, OpenAI Chat", len(body))


@pytest.mark.parametrize("seed", range(300))
def test_damaged_bytes_give_events_or_an_llm_error(seed: int) -> None:
    chance = random.Random(seed)
    body = bytearray(BODIES["lf"])
    for _ in range(chance.randint(1, 6)):
        body[chance.randrange(len(body))] = chance.randrange(256)
    try:
        events = read([bytes(body)])
    except LLMError:
        return
    for event in events:
        if isinstance(event, ToolCall | ToolInputInvalid):
            assert event.name
