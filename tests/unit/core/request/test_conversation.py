"""Messages as one conversation: call ids that no two calls share, and the way that each came."""

import pytest
from msgspec import UNSET, UnsetType

from perdure.core.request import conversation
from perdure.core.request.conversation import Conversation
from perdure.llm.message import LLMMessage, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.models.model import ModelRef, StepRoute
from perdure.schema.session import message as messages
from perdure.schema.session.message import AssistantMessage, Span, ToolPart, ToolTime
from perdure.schema.session.tool import CompletedState, PartProvider, TextContent

MODEL = ModelRef(id="m", provider_id="p")
HERE = StepRoute(origin="https://here.example", model="wire")


def answer(
    number: int, *calls: str, hosted: bool = False, route: StepRoute | UnsetType = UNSET
) -> AssistantMessage:
    parts = [
        ToolPart(
            id=ToolCallID(call),
            name="read",
            state=CompletedState(
                input={}, content=(TextContent(text=call),), output_paths=(), structured={}
            ),
            time=ToolTime(created=1),
            provider=PartProvider(executed=hosted),
        )
        for call in calls
    ]
    thought = messages.ReasoningPart(id="r", text="hm", provider_metadata={"p": {"signature": "s"}})
    return AssistantMessage(
        id=MessageID(f"msg_{number}"),
        time=Span(created=1),
        agent="build",
        model=MODEL,
        content=(thought, *parts),
        route=route,
    )


def ids_of(lowered: tuple[LLMMessage, ...]) -> tuple[list[str], list[str]]:
    parts = [part for message in lowered for part in message.content]
    calls = [part.id for part in parts if isinstance(part, ToolCallPart)]
    return calls, [part.id for part in parts if isinstance(part, ToolResultPart)]


def test_a_server_that_counts_its_calls_anew_in_each_answer_is_mapped() -> None:
    said = Conversation(MODEL)
    seen: list[str] = []
    for number in range(3):
        calls, results = ids_of(said.lower(answer(number, "call_0", "call_1")))
        assert calls == results
        seen += calls
    assert seen[:2] == ["call_0", "call_1"]
    assert len({*seen}) == len(seen)


def test_the_same_history_gets_the_same_ids_again() -> None:
    history = [answer(number, "call_0") for number in range(3)]
    one, other = Conversation(MODEL), Conversation(MODEL)
    assert [one.lower(each) for each in history] == [other.lower(each) for each in history]


def test_calls_of_the_provider_itself_keep_their_ids() -> None:
    said = Conversation(MODEL)
    for number in range(2):
        assert ids_of(said.lower(answer(number, "srvtoolu_1", hosted=True)))[0] == ["srvtoolu_1"]


@pytest.mark.parametrize(
    ("came", "goes", "native"),
    [
        (HERE, HERE, True),
        (StepRoute(origin="https://there.example", model="wire"), HERE, False),
        (StepRoute(origin="https://here.example", model="another"), HERE, False),
        (UNSET, HERE, True),
        (HERE, None, True),
    ],
    ids=["the same", "another address", "another model there", "not recorded", "not known"],
)
def test_native_parts_go_back_only_the_way_they_came(
    came: StepRoute | UnsetType, goes: StepRoute | None, *, native: bool
) -> None:
    ((said,),) = (
        message.content for message in Conversation(MODEL, goes).lower(answer(1, route=came))
    )
    assert isinstance(said, ReasoningPart if native else TextPart)


def test_an_answer_is_shown_without_native_parts_on_demand() -> None:
    ((said,),) = (m.content for m in Conversation(MODEL).lower(answer(1), native=False))
    assert said == TextPart("hm")


def test_a_step_tells_that_all_before_it_go_without_native_parts() -> None:
    assert conversation.begins_plain(answer(1, route=StepRoute(plain=True)))
    assert not conversation.begins_plain(answer(1, route=HERE))
    assert not conversation.begins_plain(answer(1))
