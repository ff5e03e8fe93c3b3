"""An answer that broke off: which may go on, with which words, and under which ids."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.request import dropped_answer
from perdure.core.request.dropped_answer import Continuation
from perdure.core.session.turn_recorder import TurnRecorder
from perdure.llm import event as llm
from perdure.llm.error import RETRYABLE, LLMError, Reason
from perdure.llm.event import LLMEvent
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events

BROKE = LLMError("transport", "gone")
HALF = (llm.TextStart("text-0"), llm.TextDelta("text-0", "Once "))


def recorded(*said: LLMEvent) -> TurnRecorder:
    recorder = TurnRecorder(
        session_id=SessionID("ses_1"),
        message_id=MessageID("msg_1"),
        agent="build",
        model=ModelRef(id="m", provider_id="p"),
    )
    recorder.feed(said, now=1)
    return recorder


@pytest.mark.parametrize("reason", ["timeout", "unknown", "overflow", *sorted(RETRYABLE)])
def test_only_a_connection_that_broke_is_asked_again(reason: Reason) -> None:
    failure = LLMError(reason, "x")
    assert dropped_answer.may_go_on(recorded(*HALF), failure) is (reason == "transport")


@pytest.mark.parametrize(
    "said",
    [
        (),
        (*HALF, llm.TextEnd("text-0"), llm.ToolInputStart("a", "bash")),
        (*HALF, llm.Finish("stop")),
    ],
    ids=["nothing came", "a call has begun", "it is complete"],
)
def test_an_answer_that_has_not_begun_or_has_a_call_is_not_asked_again(
    said: tuple[LLMEvent, ...],
) -> None:
    assert not dropped_answer.may_go_on(recorded(*said), BROKE)


@pytest.mark.parametrize(
    ("said", "prefix"),
    [
        (HALF, "Once "),
        ((llm.TextStart("text-0"),), None),
        ((llm.TextStart("text-0"), llm.TextDelta("text-0", " \n")), None),
        ((llm.ReasoningStart("r"), llm.ReasoningDelta("r", "hm")), None),
        ((llm.ReasoningStart("r"), llm.ReasoningEnd("r"), *HALF), None),
        ((*HALF, llm.TextEnd("text-0")), None),
    ],
)
def test_only_one_open_text_is_gone_on_with(said: tuple[LLMEvent, ...], prefix: str | None) -> None:
    found = dropped_answer.prefix_of(recorded(*said), {})
    assert (found.text if found else None) == prefix
    assert dropped_answer.prefix_of(recorded(*said), None) is None


@given(
    whole=st.text(st.characters(codec="utf-8"), min_size=2, max_size=60),
    cuts=st.lists(st.integers(1, 59), max_size=3),
)
def test_wherever_it_breaks_the_text_is_whole_and_once(whole: str, cuts: list[int]) -> None:
    places = [0, *sorted({cut for cut in cuts if cut < len(whole)}), len(whole)]
    pieces = [whole[a:b] for a, b in itertools.pairwise(places)]
    recorder = recorded(llm.TextStart("text-0"), llm.TextDelta("text-0", pieces[0]))
    for number, piece in enumerate(pieces[1:], 1):
        before = recorder.streamed.said("text", "text-0")
        batch = (llm.TextStart("text-0"), llm.TextDelta("text-0", piece))
        recorder.feed(Continuation(recorder, number).map(batch), now=2)
        space = before[len(before.rstrip()) :]
        assert recorder.streamed.said("text", "text-0") == before + piece.removeprefix(space)
    (ended,) = recorder.flush(now=3)
    assert isinstance(ended, events.TextEnded)
    assert "".join(ended.text.split()) == "".join(whole.split())


def test_later_parts_of_a_continuation_are_new_parts_of_the_step() -> None:
    recorder = recorded(*HALF)
    batch: tuple[LLMEvent, ...] = (
        llm.TextStart("text-0"),
        llm.TextDelta("text-0", "upon"),
        llm.TextEnd("text-0"),
        llm.ReasoningStart("reasoning-0"),
        llm.ReasoningEnd("reasoning-0"),
        llm.TextStart("text-1"),
        llm.TextDelta("text-1", "a time"),
        llm.TextEnd("text-1"),
        llm.ToolCall("call_1", "bash", {}),
        llm.Finish("tool-calls"),
    )
    mapped = Continuation(recorder, 1).map(batch)
    recorder.feed(mapped, now=2)
    assert [getattr(event, "id", None) for event in mapped] == [
        *("text-0", "text-0", "reasoning-0-1", "reasoning-0-1"),
        *("text-1-1", "text-1-1", "text-1-1", "call_1", None),
    ]
    assert recorder.finish == llm.Finish("tool-calls")
    assert recorder.streamed.said("text", "text-0") == "Once upon"
