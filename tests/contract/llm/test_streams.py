"""What every wire protocol promises of an answer, whatever its provider's frames look like.

What only one of them says is in the `test_stream` of its own folder.
"""

from collections.abc import Sequence
from typing import Final

import pytest

from perdure.llm.error import LLMError, Reason
from perdure.llm.event import (
    Finish,
    FinishReason,
    HostedToolResult,
    ProviderError,
    ReasoningEnd,
    TextEnd,
    ToolInputEnd,
    ToolInputInvalid,
    Usage,
)
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.wire import Wire, calls_in, spoken
from tests.contract.llm.wires import each_row, each_wire
from tests.requirements import requirement

JUNK: Final = (b"", b"{", b"<html>", b"[]", b"3", b'"\xff"', b"[" * 100_000, b'{"x":' * 100_000)
NESTED: Final = '{"path":"ä 🌍","deep":{"list":[1,2.5,null,true,"\\"x\\""]}}'


piecemeal = each_wire("anthropic", "bedrock", "chat", "responses")
"""They send the input of a call as text, in pieces. Gemini sends a value."""
reason_first = each_wire("anthropic", "bedrock", "chat")
"""Their stream goes on after the reason why the answer ends."""


# ---- parts --------------------------------------------------------------------------------------


@each_wire()
def test_a_text_answer_is_one_part(wire: Wire) -> None:
    assert wire.answered([*wire.begin, *wire.text(0, "Hel", "lo"), *wire.stop(wire.why)]) == [
        *spoken(wire.text_id, "Hel", "lo"),
        Finish("stop", wire.counted),
    ]


@requirement("S161", "S197")
@each_wire()
def test_each_part_ends_before_the_next_one_starts_and_keeps_what_goes_back(wire: Wire) -> None:
    assert wire.answered(wire.everything) == wire.everything_is


@each_wire("anthropic", "bedrock", "gemini")
def test_a_hosted_result_counts_once_and_only_for_its_call(wire: Wire) -> None:
    events = wire.answered(wire.hosted_once)
    assert sum(isinstance(event, HostedToolResult) for event in events) == 1


@each_wire("anthropic", "bedrock", "gemini")
def test_reasoning_that_was_cut_off_has_no_signature_to_send_back(wire: Wire) -> None:
    assert wire.answered(wire.unsigned)[-2] == ReasoningEnd("reasoning-0")


@each_row("frame", lambda wire: ((frame,) for frame in wire.silent))
def test_unknown_and_empty_frames_say_nothing(wire: Wire, frame: bytes) -> None:
    plain = [*wire.begin, *wire.text(0, "Hel", "lo"), *wire.stop(wire.why)]
    assert wire.answered([frame, *plain]) == wire.answered(plain)


# ---- calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(1, 12))
@piecemeal
def test_an_input_may_come_in_pieces_of_any_size(wire: Wire, size: int) -> None:
    pieces = [NESTED[at : at + size] for at in range(0, len(NESTED), size)]
    events = wire.answered([*wire.call(0, "a", "read", *pieces), *wire.stop(wire.for_calls)])
    assert ToolInputEnd("a", NESTED) in events
    assert calls_in(events) == [("a", "read", codec.decode_any(NESTED))]


@piecemeal
def test_calls_whose_pieces_interleave_stay_apart(wire: Wire) -> None:
    one = wire.call(0, "a", "read", '{"n":', "1}")
    two = wire.call(1, "b", "read", '{"n":', "2}")
    mixed = [frame for pair in zip(one, two, strict=True) for frame in pair]
    events = wire.answered([*mixed, *wire.stop(wire.for_calls)])
    assert calls_in(events) == [("a", "read", {"n": 1}), ("b", "read", {"n": 2})]


@pytest.mark.parametrize(
    "given",
    [("a", "a"), ("", ""), (None, None), ("call_1", "call_1"), ("tool_1", ""), ("", "tool_0")],
)
@each_wire()
def test_ids_are_unique_within_an_answer(wire: Wire, given: tuple[str | None, str | None]) -> None:
    frames = [f for n, one in enumerate(given) for f in wire.call(n, one, "read", "{}")]
    events = wire.answered([*frames, *wire.stop(wire.for_calls)])
    made = [one for one, _, _ in calls_in(events)]
    assert len(made) == len({*made}) == 2
    assert all(made)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        ("  \n", {}),
        ("{}", {}),
        ('{"a":1}', {"a": 1}),
        ("[1,2]", {"value": [1, 2]}),
        ('"text"', {"value": "text"}),
        ("null", {"value": None}),
        ("7", {"value": 7}),
    ],
)
@piecemeal
def test_input_is_always_an_object(wire: Wire, raw: str, expected: JsonObject) -> None:
    events = wire.answered([*wire.call(0, "a", "read", raw), *wire.stop(wire.for_calls)])
    assert ToolInputEnd("a", raw) in events
    assert calls_in(events) == [("a", "read", expected)]


@pytest.mark.parametrize("raw", ['{"path": ', "{'a': 1}", '{"a":1}{"a":1}', "[" * 100_000, "\x00"])
@piecemeal
def test_input_that_is_not_json_is_kept_and_never_called(wire: Wire, raw: str) -> None:
    frames = [*wire.begin, *wire.call(0, "a", "read", raw), *wire.stop(wire.for_calls)]
    events = wire.answered(frames)
    assert ToolInputEnd("a", raw) in events
    assert isinstance(events[-2], ToolInputInvalid)
    assert calls_in(events) == []
    assert events[-1] == Finish("tool-calls", wire.counted)


@each_wire()
def test_an_empty_input_of_a_cut_answer_is_not_taken_for_a_call(wire: Wire) -> None:
    events = wire.answered([*wire.begin, *wire.cut_call])
    assert isinstance(events[-2], ToolInputInvalid)
    assert calls_in(events) == []
    assert events[-1] == Finish("length", wire.counted)


# ---- ends ---------------------------------------------------------------------------------------


@each_row("why, expected", lambda wire: wire.stops.items())
def test_stop_reasons_have_one_vocabulary(wire: Wire, why: str, expected: FinishReason) -> None:
    events = wire.answered([*wire.begin, *wire.text(0, "half"), *wire.stop(why)])
    assert events[-2:] == [TextEnd(wire.text_id), Finish(expected, wire.counted)]


@each_row("frames, expected", lambda wire: wire.counts)
def test_counts_do_not_overlap_and_are_never_made_up(
    wire: Wire, frames: Sequence[bytes], expected: Usage | None
) -> None:
    assert wire.answered(frames) == [Finish("stop", expected)]


@requirement("S161")
@each_row("frame, said, reason", lambda wire: wire.errors)
def test_an_error_inside_the_stream_ends_it(
    wire: Wire, frame: bytes, said: str, reason: Reason
) -> None:
    assert wire.heard([*wire.begin, *wire.half, frame])[-2:] == [
        TextEnd(wire.text_id),
        ProviderError(message=said, reason=reason),
    ]


@each_wire()
def test_a_stream_that_just_ends_is_incomplete(wire: Wire) -> None:
    frames = [*wire.begin, *wire.text(0, "half"), *wire.call(1, "a", "bash", "{}")]
    with pytest.raises(LLMError, match="ended before it was complete") as failed:
        wire.answered(frames)
    assert failed.value.reason == "transport"


@reason_first
def test_a_stop_reason_completes_a_stream_that_never_ends(wire: Wire) -> None:
    frames = [*wire.begin, wire.stop(wire.why)[0]]
    assert wire.heard(frames) == []
    assert wire.answered(frames) == [Finish("stop", wire.counted_at_reason)]


@each_wire("anthropic", "chat")
def test_an_end_without_a_reason_completes_text_and_whole_calls(wire: Wire) -> None:
    end = wire.stop(wire.why)[-1]
    assert wire.heard([*wire.text(0, "a"), end])[-2:] == [TextEnd("text-0"), Finish("unknown")]
    *_, made, finish = wire.heard([*wire.call(0, "a", "bash", '{"n":1}'), end])
    assert (calls_in([made]), finish) == ([("a", "bash", {"n": 1})], Finish("tool-calls"))


@pytest.mark.parametrize("half", ["", '{"command": "rm'])
@each_wire("anthropic", "chat")
def test_an_end_without_a_reason_makes_no_call_of_half_an_input(wire: Wire, half: str) -> None:
    end = wire.stop(wire.why)[-1]
    *_, made, finish = wire.heard([*wire.call(0, "a", "bash", half), end])
    assert isinstance(made, ToolInputInvalid)
    assert finish == Finish("tool-calls")


@piecemeal
def test_what_follows_the_stop_reason_changes_nothing(wire: Wire) -> None:
    reason, *end = wire.stop(wire.why)
    late = [*wire.text(7, "late"), *wire.call(8, "a", "bash", "{}"), wire.stop(wire.for_calls)[0]]
    assert wire.heard([*wire.begin, reason, *late, *end]) == [Finish("stop", wire.counted)]


# ---- faults -------------------------------------------------------------------------------------


@each_row("junk", lambda wire: ((junk,) for junk in (*JUNK, *wire.junk)))
def test_junk_is_the_providers_fault(wire: Wire, junk: bytes) -> None:
    with pytest.raises(LLMError, match="The provider sent") as failed:
        wire.protocol.step(wire.protocol.start(), junk)
    assert failed.value.reason == "invalid-provider-output"


@each_row("frame, said", lambda wire: wire.broken)
def test_a_broken_lifecycle_is_named(wire: Wire, frame: bytes, said: str) -> None:
    with pytest.raises(LLMError, match=said) as failed:
        wire.heard([*wire.begin, frame])
    assert failed.value.reason == "invalid-provider-output"
