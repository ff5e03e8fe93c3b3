"""Runs of deltas in V1: the same as decoding each, whatever the text says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.net import sse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.ids import EventID, MessageID, SessionID, ToolCallID
from perdure.schema.live_event import ReasoningDelta, TextDelta, ToolInputDelta
from perdure.schema.location import LocationRef
from perdure.server.v1.stream.delta_run import (
    DeltaPart,
    DeltaParts,
    DeltaRun,
    find_run,
)

SESSION, MESSAGE = SessionID("ses_1"), MessageID("msg_1")
HERE = LocationRef('/a/{b}","data":{"timestamp":1')
HOSTILE = (
    '"}}\n\ndata: {"id":"evt_x"',
    ',"cursor":1}}\n\n',
    ',"type":"session.next.text.delta","data":{"timestamp":1,"sessionID":"ses_1","delta":"',
    '{"timestamp":1,"sessionID"',
    "\\",
    "\u2028\x85\0",
)


def frame(delta: TextDelta | ReasoningDelta | ToolInputDelta, where: LocationRef | None) -> bytes:
    kind = {
        TextDelta: "session.next.text.delta",
        ReasoningDelta: "session.next.reasoning.delta",
        ToolInputDelta: "session.next.tool.input.delta",
    }[type(delta)]
    envelope: JsonObject = {"id": EventID(f"evt_{delta.cursor}"), "type": kind}
    if where is not None:
        envelope["location"] = where
    return sse.write(codec.encode({**envelope, "data": delta}))


def said(text: str, cursor: int = 1) -> TextDelta:
    return TextDelta(
        timestamp=7,
        session_id=SESSION,
        assistant_message_id=MESSAGE,
        text_id="txt_1",
        delta=text,
        cursor=cursor,
    )


def begin(run: DeltaRun, *, twice: bool, part_id: str | None = "prt_1") -> DeltaPart:
    parts = DeltaParts()
    assert parts.get(run) is None
    part = parts.begin(run, part_id, twice=twice)
    assert parts.get(run) is part
    return part


def run_of(frames: bytes) -> DeltaRun:
    run = find_run(frames, 0)
    assert run is not None
    return run


def read(frames: bytes) -> list[JsonObject]:
    return [codec.decode_any(each.data) for each in sse.Reader(bytes_max=1_000_000).feed(frames)]


@given(st.lists(st.text() | st.sampled_from(HOSTILE), min_size=1, max_size=8), st.booleans())
def test_a_run_says_what_its_deltas_say(texts: list[str], placed: bool) -> None:
    where = HERE if placed else None
    frames = [frame(said(text, number), where) for number, text in enumerate(texts)]
    run = run_of(b"".join(frames))
    assert run.frames == b"".join(frames)
    part = begin(run, twice=True)
    assert part.location == where
    told = read(part.translate(run))
    own = {"sessionID": SESSION, "messageID": MESSAGE, "partID": "prt_1", "field": "text"}
    ids = [f"evt_{number}" for number in range(len(texts))]
    assert told == [
        *(
            {
                "id": event,
                "type": "session.next.text.delta",
                "properties": codec.decode_any(codec.encode(said(text, number))),
            }
            for number, (event, text) in enumerate(zip(ids, texts, strict=True))
        ),
        *(
            {"id": event, "type": "message.part.delta", "properties": {**own, "delta": text}}
            for event, text in zip(ids, texts, strict=True)
        ),
    ]


def test_a_run_ends_before_another_part_and_what_is_no_delta() -> None:
    other = ReasoningDelta(
        timestamp=7,
        session_id=SESSION,
        assistant_message_id=MESSAGE,
        reasoning_id="rea_1",
        delta="a",
        cursor=1,
    )
    first = frame(said("a"), HERE) + frame(said("b", 2), HERE)
    status = b'data: {"id":"evt_1","type":"session.status","data":{}}\n\n'
    for strange in (frame(other, HERE), frame(said("a"), None), b": heartbeat\n\n", status):
        assert run_of(first + strange + first).frames == first
    for strange in (b": heartbeat\n\n", status, b"\n\n", b"data: {}\n\n"):
        assert find_run(strange + first, 0) is None
    assert run_of(frame(other, HERE)).read_place().reasoning_id == "rea_1"
    assert find_run(status + first, len(status)) == run_of(first)


@pytest.mark.parametrize("twice", [True, False])
def test_the_input_of_a_call_has_no_event_of_v1(twice: bool) -> None:
    given = ToolInputDelta(
        timestamp=7,
        session_id=SESSION,
        assistant_message_id=MESSAGE,
        call_id=ToolCallID("call_1"),
        delta='{"a":',
        cursor=1,
    )
    run = run_of(frame(given, HERE) * 2)
    part = begin(run, twice=twice, part_id=None)
    kinds = [each["type"] for each in read(part.translate(run))]
    assert kinds == ["session.next.tool.input.delta"] * (2 if twice else 0)
