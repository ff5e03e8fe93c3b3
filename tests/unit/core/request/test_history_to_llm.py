"""Session History as a model sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.core.request import history_to_llm
from perdure.core.session.recovery import INTERRUPTED
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    split_segments,
)
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import message as stored
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    Created,
    SessionMessage,
    Span,
)
from perdure.schema.session.prompt import FileAttachment
from perdure.schema.session.todo import Todo
from perdure.schema.session.tool import (
    AttachedContent,
    CompletedState,
    ErrorState,
    FileContent,
    PartProvider,
    PendingState,
    ProviderMetadata,
    RunningState,
    TextContent,
    ToolContent,
    ToolState,
    error_info,
)
from tests.fixtures import MODEL, SESSION
from tests.requirements import requirement

FOREIGN = ModelRef(id="other", provider_id="p")
NATIVE: ProviderMetadata = {"p": {"signature": "s"}}
AT = Created(created=1)


def assistant(
    *content: AssistantPart, model: ModelRef = MODEL, failed: bool = False
) -> AssistantMessage:
    return AssistantMessage(
        id=MessageID("msg_a"),
        time=Span(created=1),
        agent="build",
        model=model,
        content=content,
        error=error_info("lost") if failed else UNSET,
    )


def thought(text: str, metadata: ProviderMetadata | UnsetType = UNSET) -> stored.ReasoningPart:
    return stored.ReasoningPart(id="r", text=text, provider_metadata=metadata)


def call(state: ToolState, provider: PartProvider | UnsetType = UNSET) -> stored.ToolPart:
    return stored.ToolPart(
        id=ToolCallID("c"),
        name="read",
        state=state,
        time=stored.ToolTime(created=1),
        provider=provider,
    )


def done(content: tuple[ToolContent, ...] = (), structured: JsonObject | None = None) -> ToolState:
    return CompletedState(
        input={"path": "a"}, content=content, output_paths=(), structured=structured or {}
    )


def parts(message: SessionMessage, model: ModelRef = MODEL) -> list[Part]:
    return [part for lowered in history_to_llm.lower(message, model) for part in lowered.content]


def test_what_was_read_of_an_attachment_stands_in_its_place_once() -> None:
    message = stored.UserMessage(
        id=MessageID("msg_u"),
        time=AT,
        text="look",
        files=(FileAttachment(uri="file:///a", mime="text/plain"),) * 2,
        attached=(
            AttachedContent((TextContent("mentioned"),)),
            AttachedContent((TextContent("second file"),), file=1),
        ),
    )
    assert parts(message) == [
        TextPart("look"),
        MediaPart("text/plain", "file:///a", None),
        TextPart("second file"),
        TextPart("mentioned"),
    ]


def test_a_user_message_has_its_text_and_each_file() -> None:
    message = stored.UserMessage(
        id=MessageID("msg_u"),
        time=AT,
        text="look",
        files=(
            FileAttachment(uri="data:,x", mime="text/plain", name="x"),
            FileAttachment(uri="https://h/i.png", mime="image/png"),
        ),
    )
    assert history_to_llm.lower(message, MODEL) == (
        LLMMessage(
            "user",
            (
                TextPart("look"),
                MediaPart("text/plain", "data:,x", "x"),
                MediaPart("image/png", "https://h/i.png"),
            ),
        ),
    )


@requirement("S5")
def test_a_change_of_context_keeps_its_place_as_a_system_message() -> None:
    message = stored.SystemMessage(id=MessageID("msg_s"), time=AT, text="it is Tuesday")
    assert history_to_llm.lower(message, MODEL) == (
        LLMMessage("system", (TextPart("it is Tuesday"),)),
    )


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            stored.SyntheticMessage(
                id=MessageID("msg_x"), time=AT, session_id=SESSION, text="made by us"
            ),
            ["made by us"],
        ),
        (
            stored.ShellMessage(
                id=MessageID("msg_x"),
                time=Span(created=1),
                call_id=ToolCallID("c"),
                command="ls -l",
                output="total 0",
            ),
            ["ls -l", "total 0"],
        ),
        (
            stored.CompactionMessage(
                id=MessageID("msg_x"), time=AT, reason="auto", summary="so far", recent="last words"
            ),
            ["so far", "last words", "not a new instruction"],
        ),
        (
            stored.CompactionMessage(
                id=MessageID("msg_x"),
                time=AT,
                reason="auto",
                summary="so far",
                recent="last words",
                directives=("use tabs", "never push"),
                todos=(Todo(content="parse", status="pending", priority="low"),),
            ),
            ["[User]: use tabs\n\n[User]: never push\n</user-messages>", "- [pending] parse\n"],
        ),
    ],
)
def test_what_happened_aside_is_told_as_the_user(message: SessionMessage, said: list[str]) -> None:
    ((lowered,), (part,)) = history_to_llm.lower(message, MODEL), parts(message)
    assert lowered.role == "user"
    assert isinstance(part, TextPart)
    assert all(words in part.text for words in said)


def test_switching_agent_or_model_is_not_told() -> None:
    agent = stored.AgentSwitchedMessage(id=MessageID("msg_x"), time=AT, agent="plan")
    model = stored.ModelSwitchedMessage(id=MessageID("msg_x"), time=AT, model=FOREIGN)
    assert history_to_llm.lower(agent, MODEL) == history_to_llm.lower(model, MODEL) == ()


def test_empty_text_and_an_empty_answer_are_left_out() -> None:
    assert parts(assistant(stored.TextPart(id="t", text=""))) == []
    assert history_to_llm.lower(assistant(), MODEL) == ()


@requirement("S161", "S197")
@pytest.mark.parametrize(
    ("message", "model", "seen"),
    [
        (assistant(thought("hm", NATIVE)), MODEL, [ReasoningPart("hm", NATIVE)]),
        (assistant(thought("", NATIVE)), MODEL, [ReasoningPart("", NATIVE)]),
        (assistant(thought("hm")), MODEL, [ReasoningPart("hm")]),
        (assistant(thought("")), MODEL, []),
        (assistant(thought("hm", NATIVE), failed=True), MODEL, [ReasoningPart("hm")]),
        (assistant(thought("", NATIVE), failed=True), MODEL, []),
        (assistant(thought("hm", NATIVE)), FOREIGN, [TextPart("hm")]),
        (assistant(thought("", NATIVE)), FOREIGN, []),
    ],
)
def test_reasoning_goes_back_natively_only_to_the_model_it_came_from(
    message: AssistantMessage, model: ModelRef, seen: list[Part]
) -> None:
    assert parts(message, model) == seen


@requirement("S161")
def test_a_variant_of_the_same_model_is_the_same_model() -> None:
    other = ModelRef(id=MODEL.id, provider_id=MODEL.provider_id, variant="high")
    assert parts(assistant(thought("hm", NATIVE)), other) == [ReasoningPart("hm", NATIVE)]


@requirement("S161")
@pytest.mark.parametrize(
    ("model", "failed", "kept"),
    [(MODEL, False, True), (MODEL, True, False), (FOREIGN, False, False)],
)
def test_a_call_and_its_result_carry_their_own_metadata(
    model: ModelRef, *, failed: bool, kept: bool
) -> None:
    provider = PartProvider(executed=False, metadata=NATIVE, result_metadata={"p": {"r": 1}})
    made, result = parts(assistant(call(done(), provider), failed=failed), model)
    assert isinstance(made, ToolCallPart)
    assert isinstance(result, ToolResultPart)
    assert made.metadata == (NATIVE if kept else None)
    assert result.metadata == ({"p": {"r": 1}} if kept else None)


@requirement("S161")
def test_a_result_without_metadata_of_its_own_has_that_of_its_call() -> None:
    _, result = parts(assistant(call(done(), PartProvider(executed=False, metadata=NATIVE))))
    assert isinstance(result, ToolResultPart)
    assert result.metadata == NATIVE


def test_results_of_local_calls_follow_the_answer_and_hosted_ones_stay_inside() -> None:
    hosted = CompletedState(
        input={}, content=(), output_paths=(), structured={}, result={"type": "json", "value": 1}
    )
    lowered = history_to_llm.lower(
        assistant(call(done()), call(hosted, PartProvider(executed=True))), MODEL
    )
    assert [message.role for message in lowered] == ["assistant", "tool"]
    kinds = [type(part).__name__ for part in lowered[0].content]
    assert kinds == ["ToolCallPart", "ToolCallPart", "ToolResultPart"]


@requirement("S167")
@pytest.mark.parametrize(
    ("state", "result"),
    [
        (done(structured={"n": 1}), ToolResult("json", {"n": 1})),
        (done((TextContent(text="one"),)), ToolResult("text", "one")),
        (done((TextContent(text="one"), TextContent(text="two"))), ToolResult("text", "one\ntwo")),
        (
            done((TextContent(text="one"), FileContent(uri="data:,x", mime="text/plain"))),
            ToolResult("content", [TextPart("one"), MediaPart("text/plain", "data:,x")]),
        ),
        (
            ErrorState(input={}, content=(), structured={}, error=error_info("no")),
            ToolResult("error", "no"),
        ),
        (RunningState(input={}, structured={}, content=()), ToolResult("error", INTERRUPTED)),
        (PendingState(input=""), ToolResult("error", INTERRUPTED)),
    ],
)
def test_every_call_has_a_result(state: ToolState, result: ToolResult) -> None:
    _, answer = parts(assistant(call(state)))
    assert isinstance(answer, ToolResultPart)
    assert answer.result == result


@pytest.mark.parametrize(
    ("raw", "given"),
    [
        ('{"a":1}', {"a": 1}),
        ("", {}),
        ("[1]", {"value": [1]}),
        ('"x"', {"value": "x"}),
        ('{"a":', {}),
        ("[" * 100_000, {}),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, {}),
    ],
    ids=["object", "empty", "list", "text", "cut off", "deep and cut off", "deep"],
)
def test_an_input_that_never_became_json_still_lowers(raw: str, given: JsonObject) -> None:
    made, _ = parts(assistant(call(PendingState(input=raw))))
    assert isinstance(made, ToolCallPart)
    assert made.input == given


TEXTS = st.text(max_size=8)
METADATA: st.SearchStrategy[ProviderMetadata] = st.just({"p": {"k": "v"}})
OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(TEXTS, st.integers(), max_size=2)
CONTENTS: st.SearchStrategy[tuple[ToolContent, ...]] = st.lists(
    TEXTS.map(lambda text: TextContent(text=text))
    | TEXTS.map(lambda text: FileContent(uri=text, mime="image/png")),
    max_size=3,
).map(tuple)
STATES: st.SearchStrategy[ToolState] = (
    TEXTS.map(lambda raw: PendingState(input=raw))
    | st.builds(RunningState, OBJECTS, OBJECTS, CONTENTS)
    | st.builds(CompletedState, OBJECTS, CONTENTS, st.just(()), OBJECTS, st.none() | st.just(UNSET))
    | st.builds(ErrorState, OBJECTS, CONTENTS, OBJECTS, TEXTS.map(error_info))
)
PROVIDERS = st.just(UNSET) | st.builds(
    PartProvider, st.booleans(), METADATA | st.just(UNSET), METADATA | st.just(UNSET)
)
PARTS: st.SearchStrategy[AssistantPart] = (
    TEXTS.map(lambda text: stored.TextPart(id="t", text=text))
    | st.builds(thought, TEXTS, METADATA | st.just(UNSET))
    | st.builds(call, STATES, PROVIDERS)
)
MODELS = st.sampled_from([MODEL, FOREIGN])
MESSAGES: st.SearchStrategy[SessionMessage] = st.one_of(
    st.lists(PARTS, max_size=6).flatmap(
        lambda content: st.builds(assistant, *map(st.just, content), model=MODELS)
    ),
    TEXTS.map(lambda text: stored.UserMessage(id=MessageID("msg_u"), time=AT, text=text)),
    TEXTS.map(lambda text: stored.SystemMessage(id=MessageID("msg_s"), time=AT, text=text)),
)


@given(st.lists(MESSAGES, max_size=8), MODELS)
def test_any_history_lowers_and_no_call_dangles(
    history: list[SessionMessage], model: ModelRef
) -> None:
    for message in history:
        lowered = history_to_llm.lower(message, model)
        calls = [p.id for m in lowered for p in m.content if isinstance(p, ToolCallPart)]
        results = [p.id for m in lowered for p in m.content if isinstance(p, ToolResultPart)]
        assert calls == results
        assert all(m.content for m in lowered)


@given(st.lists(MESSAGES, max_size=8), MODELS)
def test_runs_keep_the_order_and_an_answer_with_its_results_is_one_run(
    history: list[SessionMessage], model: ModelRef
) -> None:
    lowered = tuple(part for message in history for part in history_to_llm.lower(message, model))
    runs = split_segments(lowered)
    assert tuple(message for run in runs for message in run.messages) == lowered
    for run in runs:
        first, *rest = [message.role for message in run.messages]
        allowed = {"tool"} if first in ("assistant", "tool") else {"user", "system"}
        assert set(rest) <= allowed


@pytest.mark.parametrize(
    "message",
    [
        stored.UserMessage(
            id=MessageID("msg_u"),
            time=AT,
            text="hi",
            files=(FileAttachment(uri="data:image/png;base64,AAAA", mime="image/png"),),
        ),
        stored.SyntheticMessage(id=MessageID("msg_s"), time=AT, session_id=SESSION, text="hi"),
        stored.ShellMessage(
            id=MessageID("msg_s"),
            time=Span(created=1),
            call_id=ToolCallID("c"),
            command="ls",
            output="hi",
        ),
        stored.CompactionMessage(
            id=MessageID("msg_c"), time=AT, reason="auto", summary="hi", recent="hi"
        ),
    ],
    ids=lambda message: type(message).__name__,
)
def test_an_excluded_message_of_the_user_becomes_a_marker(message: SessionMessage) -> None:
    excluded = replace(message, time=replace(message.time, excluded=2))
    marker = LLMMessage("user", (TextPart(history_to_llm.EXCLUDED_MESSAGE),))
    assert history_to_llm.lower(excluded, MODEL) == (marker,)


def test_an_excluded_answer_is_gone_with_its_calls_and_results() -> None:
    message = assistant(thought("hm", NATIVE), stored.TextPart(id="t", text="so"), call(done()))
    excluded = replace(message, time=Span(created=1, excluded=2))
    assert history_to_llm.lower(excluded, MODEL) == ()


@pytest.mark.parametrize(
    "state",
    [
        done((TextContent(text="secret"),)),
        ErrorState(input={}, content=(), structured={}, error=error_info("secret")),
        PendingState(input="{"),
    ],
)
def test_an_excluded_result_is_a_marker_beside_its_call(state: ToolState) -> None:
    part = replace(call(state), time=stored.ToolTime(created=1, excluded=2, pruned=3))
    asked, answered = parts(assistant(part))
    assert isinstance(asked, ToolCallPart)
    assert isinstance(answered, ToolResultPart)
    assert (asked.id, answered.id) == ("c", "c")
    assert answered.result == ToolResult("text", history_to_llm.EXCLUDED_RESULT)


def test_an_excluded_hosted_call_goes_whole_and_no_native_item_is_left_alone() -> None:
    provider = PartProvider(executed=True, metadata=NATIVE, result_metadata=NATIVE)
    search = replace(call(done(), provider), time=stored.ToolTime(created=1, excluded=2))
    mine = replace(call(done(), PartProvider(executed=False, metadata=NATIVE)), id=ToolCallID("d"))
    found = parts(assistant(thought("hm", NATIVE), search, mine))
    assert found[0] == ReasoningPart("hm", None)
    assert [part.id for part in found if isinstance(part, ToolCallPart | ToolResultPart)] == [
        "d",
        "d",
    ]
    assert all(part.metadata is None for part in found if isinstance(part, ToolCallPart))


def test_a_pruned_result_names_the_file_with_its_text_or_says_what_to_do() -> None:
    state = CompletedState(
        input={}, content=(TextContent(text="long"),), output_paths=("/a", "/b"), structured={}
    )
    pruned = stored.ToolTime(created=1, pruned=2)
    with_file = history_to_llm.result_of(replace(call(state), time=pruned))
    assert with_file.type == "text"
    assert "The whole text is in /b:" in with_file.value
    without = history_to_llm.result_of(replace(call(done()), time=pruned))
    assert "Call the tool again" in without.value
    failed = ErrorState(input={}, content=(), structured={}, error=error_info("long"))
    assert history_to_llm.result_of(replace(call(failed), time=pruned)).type == "error"
