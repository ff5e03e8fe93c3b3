"""The facts of one Provider Turn, in the order in which they become durable."""

from collections.abc import Sequence

import pytest

from perdure.core.session import call_recorder
from perdure.core.session.turn_recorder import Fragment, TurnRecorder
from perdure.llm import event as llm
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent, Usage
from perdure.llm.message import ToolResult
from perdure.schema import codec, manifest
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID
from perdure.schema.models.model import TokenCache, TokenUsage
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.tool import TextContent
from tests.fixtures import MODEL, SESSION
from tests.requirements import requirement

TEXT = (llm.TextStart("t"), llm.TextDelta("t", "Hel"), llm.TextDelta("t", "lo"), llm.TextEnd("t"))
REASONING = (llm.ReasoningStart("r"), llm.ReasoningDelta("r", "hm"), llm.ReasoningEnd("r"))
STOP = llm.Finish("stop")


def recorder() -> TurnRecorder:
    return TurnRecorder(
        session_id=SESSION, message_id=MessageID("msg_a"), agent="build", model=MODEL
    )


def call(id: str, raw: str = '{"path":"a"}') -> tuple[LLMEvent, ...]:
    return (
        llm.ToolInputStart(id, "read"),
        llm.ToolInputDelta(id, raw),
        llm.ToolInputEnd(id, raw),
        llm.ToolCall(id, "read", codec.decode_any(raw)),
    )


def hosted(id: str) -> llm.ToolCall:
    return llm.ToolCall(id, "web", {}, provider_executed=True, metadata={"p": {"item": id}})


def facts(recorder: TurnRecorder, batch: Sequence[LLMEvent]) -> list[SessionEvent]:
    return [item for item in recorder.feed(batch, now=1) if not isinstance(item, Fragment)]


def succeed(recorder: TurnRecorder, id: str) -> events.ToolSucceeded:
    return recorder.succeeded(
        id, now=2, structured={}, content=(TextContent(text="ok"),), output_paths=()
    )


def names(recorded: Sequence[SessionEvent]) -> list[str]:
    prefix = "session.next."
    return [manifest.definition_of(event).type.removeprefix(prefix) for event in recorded]


CALLED = ["tool.input.started", "tool.input.ended", "tool.called"]


@requirement("S162", "S13")
def test_a_text_answer() -> None:
    turn = recorder()
    recorded = [*facts(turn, [*TEXT, STOP]), *turn.step_ended(now=3, cost=0.5)]
    assert names(recorded) == ["step.started", "text.started", "text.ended", "step.ended"]
    ended, last = recorded[2], recorded[3]
    assert isinstance(ended, events.TextEnded)
    assert isinstance(last, events.StepEnded)
    assert (ended.text, last.finish, last.cost) == ("Hello", "stop", 0.5)


@requirement("S149")
def test_every_fact_of_a_step_names_its_assistant_message() -> None:
    turn = recorder()
    recorded = [*facts(turn, [*REASONING, *TEXT, *call("1"), STOP]), succeed(turn, "1")]
    recorded += turn.step_ended(now=3, cost=0)
    assert {getattr(event, "assistant_message_id", None) for event in recorded} == {"msg_a"}


def test_a_reasoned_answer_keeps_what_the_provider_signed() -> None:
    signed = llm.ReasoningEnd("r", metadata={"p": {"signature": "s"}})
    recorded = facts(recorder(), [*REASONING[:2], signed, *TEXT, STOP])
    assert names(recorded)[1:3] == ["reasoning.started", "reasoning.ended"]
    ended = recorded[2]
    assert isinstance(ended, events.ReasoningEnded)
    assert (ended.text, ended.provider_metadata) == ("hm", {"p": {"signature": "s"}})


@requirement("S169")
def test_one_tool_is_recorded_before_it_runs_and_settled_before_the_step_ends() -> None:
    turn = recorder()
    recorded = facts(turn, [*call("1"), llm.Finish("tool-calls")])
    assert turn.unsettled == ("1",)
    recorded += [succeed(turn, "1"), *turn.step_ended(now=3, cost=0)]
    assert names(recorded) == ["step.started", *CALLED, "tool.success", "step.ended"]
    assert turn.local_calls == 1
    assert turn.unsettled == ()


def test_a_text_beside_a_tool_ends_where_the_provider_ends_it() -> None:
    turn = recorder()
    recorded = facts(turn, [*TEXT[:3], *call("1"), llm.Finish("tool-calls")])
    assert names(recorded) == ["step.started", "text.started", *CALLED, "text.ended"]


def test_two_tools_settle_in_the_order_in_which_they_complete() -> None:
    turn = recorder()
    first, second = call("1"), call("2")
    recorded = facts(turn, [first[0], second[0], *first[1:], *second[1:]])
    assert names(recorded)[1:] == ["tool.input.started", *CALLED, *CALLED[1:]]
    assert [succeed(turn, call_id).call_id for call_id in ("2", "1")] == ["2", "1"]


def test_an_empty_answer_is_still_a_step() -> None:
    turn = recorder()
    assert facts(turn, [STOP]) == []
    assert names(turn.step_ended(now=3, cost=0)) == ["step.started", "step.ended"]


def test_an_answer_cut_by_its_length_says_so() -> None:
    turn = recorder()
    facts(turn, [*TEXT, llm.Finish("length")])
    (last,) = turn.step_ended(now=3, cost=0)
    assert isinstance(last, events.StepEnded)
    assert last.finish == "length"


def test_a_request_that_fails_is_a_failed_step() -> None:
    failed = recorder().step_failed("no route", now=3)
    assert names(failed) == ["step.started", "step.failed"]


def test_a_stream_that_breaks_off_keeps_the_text_so_far() -> None:
    turn = recorder()
    recorded = [*facts(turn, TEXT[:2]), *turn.step_failed("cut", now=3)]
    assert names(recorded) == ["step.started", "text.started", "text.ended", "step.failed"]
    kept = recorded[2]
    assert isinstance(kept, events.TextEnded)
    assert kept.text == "Hel"


def test_an_interrupt_in_a_text_keeps_it_and_in_a_tool_fails_it() -> None:
    turn = recorder()
    recorded = facts(turn, [*call("1"), *TEXT[:2]])
    recorded += turn.flush(now=3)
    recorded += turn.fail_unsettled("Tool execution interrupted", now=3)
    recorded += turn.step_failed("Provider turn interrupted", now=3)
    assert names(recorded)[-3:] == ["text.ended", "tool.failed", "step.failed"]
    failure = recorded[-2]
    assert isinstance(failure, events.ToolFailed)
    assert codec.to_json_value(failure).get("result") is None


def test_input_that_is_no_json_is_answered_and_the_model_goes_on() -> None:
    turn = recorder()
    invalid = llm.ToolInputInvalid("1", "read", "not an object")
    recorded = facts(turn, [*call("1", '{"a":1}')[:3], invalid, llm.Finish("tool-calls")])
    assert names(recorded) == ["step.started", *CALLED[:2], "tool.failed"]
    assert turn.local_calls == 1
    assert turn.unsettled == ()


def test_a_call_without_streamed_input_gets_its_whole_lifecycle() -> None:
    recorded = facts(recorder(), [llm.ToolCall("1", "read", {"path": "a"})])
    assert names(recorded) == ["step.started", *CALLED]


def test_the_provider_settles_the_calls_it_runs_itself() -> None:
    turn = recorder()
    found = llm.HostedToolResult("1", ToolResult("json", {"n": 1}), metadata={"p": {"r": 1}})
    recorded = facts(turn, [hosted("1"), found, STOP])
    assert names(recorded) == ["step.started", *CALLED, "tool.success"]
    settled = recorded[-1]
    assert isinstance(settled, events.ToolSucceeded)
    assert settled.result == {"type": "json", "value": {"n": 1}}
    assert turn.local_calls == 0


def test_a_hosted_call_that_failed_is_failed() -> None:
    turn = recorder()
    recorded = facts(turn, [hosted("1"), llm.HostedToolResult("1", ToolResult("error", "no"))])
    assert names(recorded)[-1] == "tool.failed"
    late = [llm.HostedToolResult("1", ToolResult("error", "again"))]
    assert facts(turn, late) == []


def test_a_hosted_call_without_a_result_is_failed_and_local_ones_are_left() -> None:
    turn = recorder()
    facts(turn, [hosted("1"), *call("2"), STOP])
    (failure,) = turn.fail_hosted(now=3)
    assert isinstance(failure, events.ToolFailed)
    assert (failure.call_id, failure.error.message) == ("1", call_recorder.NO_HOSTED_RESULT)
    assert turn.unsettled == ("2",)


def test_an_error_inside_the_stream_ends_it_and_nothing_after_it_counts() -> None:
    turn = recorder()
    batch = [*TEXT[:2], llm.ProviderError(message="overloaded"), *TEXT[2:], *call("1")]
    assert names(facts(turn, batch)) == ["step.started", "text.started"]
    assert turn.over
    assert turn.provider_error is not None
    assert names(turn.step_failed("overloaded", now=3)) == ["text.ended", "step.failed"]


def test_interleaved_texts_stay_apart() -> None:
    batch: list[LLMEvent] = [
        llm.TextStart("a"),
        llm.TextStart("b"),
        llm.TextDelta("b", "second"),
        llm.TextDelta("a", "first"),
        llm.TextEnd("b"),
        llm.TextEnd("a"),
    ]
    ended = [e for e in facts(recorder(), batch) if isinstance(e, events.TextEnded)]
    assert [(event.text_id, event.text) for event in ended] == [("b", "second"), ("a", "first")]


@requirement("S152")
def test_without_listeners_the_facts_are_the_same() -> None:
    batch = [*REASONING, *TEXT, *call("1"), hosted("2"), llm.Finish("tool-calls")]
    heard = facts(recorder(), batch)
    unheard = recorder().feed(batch, now=1, fragments=False)
    assert unheard == heard
    assert not any(isinstance(item, Fragment) for item in unheard)


@requirement("S152")
def test_each_fragment_comes_after_the_start_of_its_part_and_before_its_end() -> None:
    out = recorder().feed([*TEXT, *REASONING, *call("1")], now=1)
    order = [type(item).__name__ for item in out]
    assert order == [
        "StepStarted",
        "TextStarted",
        "TextDelta",
        "TextDelta",
        "TextEnded",
        "ReasoningStarted",
        "ReasoningDelta",
        "ReasoningEnded",
        "ToolInputStarted",
        "ToolInputDelta",
        "ToolInputEnded",
        "ToolCalled",
    ]


RESULT = llm.HostedToolResult("1", ToolResult("json", 1))
INVALID = llm.ToolInputInvalid("1", "read", "bad")


@pytest.mark.parametrize(
    "batch",
    [
        [llm.TextStart("t"), llm.TextStart("t")],
        [*TEXT, llm.TextStart("t")],
        [llm.TextDelta("t", "x")],
        [llm.TextEnd("t")],
        [*TEXT, llm.TextDelta("t", "x")],
        [*TEXT, llm.TextEnd("t")],
        [llm.ReasoningStart("r"), llm.ReasoningStart("r")],
        [llm.ReasoningDelta("r", "x")],
        [llm.ReasoningEnd("r")],
        [*call("1"), llm.ToolInputStart("1", "read")],
        [llm.ToolInputDelta("1", "x")],
        [llm.ToolInputEnd("1", "x")],
        [*call("1")[:3], llm.ToolInputDelta("1", "x")],
        [*call("1")[:3], llm.ToolInputEnd("1", "x")],
        [*call("1"), call("1")[3]],
        [llm.ToolInputStart("1", "read"), llm.ToolCall("1", "write", {})],
        [RESULT],
        [llm.ToolInputStart("1", "web"), RESULT],
        [*call("1"), RESULT],
        [hosted("1"), RESULT, RESULT],
        [INVALID],
        [*call("1"), INVALID],
        [*call("1")[:3], INVALID, INVALID],
        [*call("1")[:3], INVALID, call("1")[3]],
    ],
    ids=lambda batch: " ".join(type(event).__name__ for event in batch),
)
def test_a_provider_that_breaks_its_stream_fails_the_turn(batch: list[LLMEvent]) -> None:
    turn = recorder()
    with pytest.raises(LLMError) as caught:
        turn.feed(batch, now=1)
    assert caught.value.reason == "invalid-provider-output"
    # Whatever came before is still recorded, and every call in it can be settled.
    turn.flush(now=2)
    turn.fail_unsettled("Tool execution interrupted", now=2)
    assert turn.unsettled == ()
    assert names(turn.step_failed("broken", now=2))[-1] == "step.failed"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, [0, 0, 0, 0, 0]),
        (Usage(input=5, output=4, reasoning=3, cache_read=2, cache_write=1), [5, 4, 3, 2, 1]),
        (Usage(input=-5, output=-4, reasoning=-3, cache_read=-2, cache_write=-1), [0] * 5),
    ],
)
def test_usage_is_recorded_and_never_negative(usage: Usage | None, tokens: list[int]) -> None:
    turn = recorder()
    facts(turn, [llm.Finish("stop", usage)])
    ended = turn.step_ended(now=3, cost=0)[-1]
    assert isinstance(ended, events.StepEnded)
    given, out, thought, read, write = tokens
    assert ended.tokens == TokenUsage(
        input=given, output=out, reasoning=thought, cache=TokenCache(read=read, write=write)
    )


def test_a_very_long_answer_is_whole_at_its_end() -> None:
    turn = recorder()
    batch: list[LLMEvent] = [llm.TextStart("t")]
    batch += [llm.TextDelta("t", "0123456789")] * 100_000
    facts(turn, batch)
    ended = facts(turn, [llm.TextEnd("t")])[0]
    assert isinstance(ended, events.TextEnded)
    assert len(ended.text) == 1_000_000


def test_the_input_of_a_call_is_kept_as_it_was_sent() -> None:
    raw = '{ "path" :  "a" }'
    given: JsonObject = {"path": "a"}
    recorded = facts(recorder(), call("1", raw))
    ended, made = recorded[2], recorded[3]
    assert isinstance(ended, events.ToolInputEnded)
    assert isinstance(made, events.ToolCalled)
    assert (ended.text, made.input) == (raw, given)


def test_a_failed_step_does_not_quote_a_secret() -> None:
    reason = "no model: https://me:hunter2@host and DB_PASSWORD=x1"
    failed = recorder().step_failed(reason, now=3)[-1]
    assert isinstance(failed, events.StepFailed)
    assert failed.error.message == "no model: https://[redacted]@host and DB_PASSWORD=[redacted]"
