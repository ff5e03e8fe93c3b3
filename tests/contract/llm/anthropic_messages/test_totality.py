"""Whatever a Session has stored, the request made of it is one that the provider accepts.

Two turns are never the same to the letter here, and the last word is the user's or a tool's.
These are few and shrink, the many are in test_drawn_histories; `PERDURE_EXAMPLES` raises both.
"""

import os

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from perdure.core import lowering
from perdure.llm import wire_protocol
from perdure.llm.message import runs_of
from perdure.llm.protocols.anthropic_messages import ANTHROPIC_MESSAGES
from perdure.llm.request import GenerationControls, LLMRequest, ToolDefinition
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema import codec
from perdure.schema import message as stored
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.message import AssistantMessage, Created, SessionMessage, Span
from perdure.schema.model import ModelRef
from perdure.schema.prompt import FileAttachment
from perdure.schema.tool import (
    CompletedState,
    ErrorState,
    FileContent,
    PartProvider,
    PendingState,
    RunningState,
    TextContent,
    ToolState,
    error_info,
)
from tests.contract.llm.anthropic_messages.recordings import FOUND
from tests.contract.llm.anthropic_messages.test_request import PNG
from tests.contract.llm.anthropic_messages.validator import faults
from tests.contract.llm.stored_histories import LARGE, PDF, TAKES, sent
from tests.fixtures import SESSION
from tests.requirements import requirement

EXAMPLES = int(os.environ.get("PERDURE_EXAMPLES", "400"))
MODEL = ModelRef(id="m", provider_id="p")
FOREIGN = ModelRef(id="other", provider_id="q")
AT = Created(created=1)
ID = MessageID("msg_x")

texts = st.sampled_from(["", " ", "\n\t", "words", "<b> & ü 🌍 ", "\x00\x1b"]) | st.text(max_size=9)
uris = st.sampled_from(
    [
        PNG,
        LARGE,
        PDF,
        "data:image/png;base64,AAAA",
        "data:image/png;base64,!",
        "data:image/jpeg;base64,/9j/4AAQ",
        "data:text/plain,%20",
        "data:,x",
        "https://h/i.png",
        "http://h/i.png",
        "file:///x",
        "",
    ]
)
mimes = st.sampled_from(["image/png", "image/jpeg", "text/plain", "application/pdf", "", "x"])
values: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, 0, "", " ", "x", [], {}, {"type": "x"}, [{"type": "text", "text": " "}]]
)
call_ids = st.sampled_from(["call_0", "call_1", "a.b", "", "ü", "toolu_short"])
names = st.sampled_from(["read", "functions.read", "", "x" * 90, "söme tool"])
native = st.sampled_from(
    [
        UNSET,
        {"anthropic": {"signature": "c2ln"}},
        {"anthropic": {"redactedData": "RW1"}},
        {"anthropic": {"signature": ""}},
        {"openai": {"itemId": "rs_1"}},
    ]
)
contents = st.lists(
    st.builds(TextContent, texts) | st.builds(FileContent, uri=uris, mime=mimes), max_size=3
).map(tuple)


@st.composite
def states(draw: st.DrawFn) -> ToolState:
    inputs: JsonObject = {"n": draw(st.integers(0, 2**62))}
    raw = codec.encode(inputs).decode()
    content, structured = draw(contents), {"a": draw(values)}
    return draw(
        st.sampled_from(
            [
                PendingState(input=raw),
                PendingState(input=f"[{raw}]"),
                RunningState(input=inputs, structured={}, content=()),
                CompletedState(
                    input=inputs, content=content, output_paths=(), structured=structured
                ),
                CompletedState(
                    input=inputs, content=(), output_paths=(), structured={}, result=draw(values)
                ),
                ErrorState(input=inputs, content=(), structured={}, error=error_info(draw(texts))),
            ]
        )
    )


@st.composite
def local_calls(draw: st.DrawFn) -> stored.ToolPart:
    return stored.ToolPart(
        id=ToolCallID(draw(call_ids)),
        name=draw(names),
        state=draw(states()),
        time=stored.ToolTime(created=1),
        provider=draw(st.sampled_from([UNSET, PartProvider(executed=False)])),
    )


@st.composite
def hosted_calls(draw: st.DrawFn) -> stored.ToolPart:
    found = CompletedState(
        input={"query": "x"},
        content=(),
        output_paths=(),
        structured={},
        result={"type": "json", "value": draw(st.sampled_from([FOUND, [], None]))},
    )
    kept = {"anthropic": {"type": "web_search_tool_result"}}
    return stored.ToolPart(
        id=ToolCallID(draw(st.sampled_from(["srvtoolu_1", "srvtoolu_2", "ws_1", "srvtoolu_"]))),
        name="web_search",
        state=draw(st.just(found) | states()),
        time=stored.ToolTime(created=1),
        provider=PartProvider(
            executed=True, result_metadata=draw(st.sampled_from([UNSET, kept, {"openai": {}}]))
        ),
    )


@st.composite
def answers(draw: st.DrawFn) -> AssistantMessage:
    parts = st.one_of(
        st.builds(stored.TextPart, id=st.just("t"), text=texts),
        st.builds(stored.ReasoningPart, id=st.just("r"), text=texts, provider_metadata=native),
        local_calls(),
        hosted_calls(),
    )
    # A call's id is unique inside its message; the record of a turn sees to it.
    content = draw(
        st.lists(
            parts,
            max_size=4,
            unique_by=lambda part: part.id if isinstance(part, stored.ToolPart) else object(),
        )
    )
    return AssistantMessage(
        id=ID,
        time=Span(created=1),
        agent="build",
        model=draw(st.sampled_from([MODEL, FOREIGN])),
        content=tuple(content),
        error=draw(st.sampled_from([UNSET, UNSET, error_info("lost")])),
    )


attachments = st.builds(FileAttachment, uri=uris, mime=mimes, name=st.just("a\nb"))
prompts = st.builds(
    stored.UserMessage,
    id=st.just(ID),
    time=st.just(AT),
    text=texts,
    files=st.lists(attachments, max_size=2).map(tuple),
)
asides: st.SearchStrategy[SessionMessage] = st.one_of(
    st.builds(stored.SystemMessage, id=st.just(ID), time=st.just(AT), text=texts),
    st.builds(
        stored.SyntheticMessage,
        id=st.just(ID),
        time=st.just(AT),
        session_id=st.just(SESSION),
        text=texts,
    ),
    st.builds(
        stored.CompactionMessage,
        id=st.just(ID),
        time=st.just(AT),
        reason=st.just("auto"),
        summary=texts,
        recent=texts,
    ),
    st.just(stored.ModelSwitchedMessage(id=ID, time=AT, model=MODEL)),
)
histories = st.lists(answers() | prompts | asides, max_size=6)
options = st.sampled_from(
    [
        {},
        {"thinking": {"type": "enabled", "budgetTokens": 2000}},
        {"thinking": {"type": "adaptive"}},
    ]
)


@st.composite
def requests(draw: st.DrawFn) -> LLMRequest:
    history = [*draw(histories), draw(prompts)]
    lowered = tuple(part for message in history for part in lowering.lower(message, MODEL))
    runs = sent(lowered, draw(st.sampled_from(TAKES)))
    # Ids of other models' calls are told apart by what their turns hold.
    turns = [codec.encode(run) for run in runs if run.messages[0].role == "assistant"]
    assume(len(turns) == len({*turns}))
    tools = (ToolDefinition("read", "", {"anyOf": [{}]}),)
    return LLMRequest(
        model=MODEL,
        system=tuple(draw(st.lists(texts, max_size=3))),
        runs=runs,
        tools=draw(st.sampled_from([(), tools])),
        tool_choice=draw(st.sampled_from([None, "auto", "required", "none"])),
        generation=draw(
            st.sampled_from(
                [GenerationControls(), GenerationControls(max_tokens=500, temperature=1.0)]
            )
        ),
        options={"anthropic": draw(options)},
    )


@requirement("S161")
@pytest.mark.timeout(max(120, EXAMPLES // 10))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(requests(), st.booleans())
def test_no_history_makes_a_request_that_is_refused(request: LLMRequest, native: bool) -> None:
    facts = ModelFacts(name="m", system_role=native)
    raw = b"".join(wire_protocol.encode(ANTHROPIC_MESSAGES, request, facts))
    assert faults(codec.decode_any(raw), raw) == []


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answers().filter(lambda answer: bool(lowering.lower(answer, MODEL))))
def test_an_answer_in_the_middle_of_a_tool_loop_is_accepted(answer: AssistantMessage) -> None:
    (run,) = runs_of(lowering.lower(answer, MODEL))
    request = LLMRequest(model=MODEL, system=(), runs=(run,))
    raw = b"".join(wire_protocol.encode(ANTHROPIC_MESSAGES, request, ModelFacts(name="m")))
    unanswered = not any(message.role == "tool" for message in run.messages)
    expected = {"the last message is the assistant's"} if unanswered else set[str]()
    assert {*faults(codec.decode_any(raw), raw)} <= expected
