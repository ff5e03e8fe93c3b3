"""Histories that a Session can have stored, and the requests that are made of them.

For the proofs that no history makes a request that a provider refuses. A wire protocol adds the
provider metadata and the options that mean something to it.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.request import history_to_llm, media_limits, message_media
from perdure.core.request.media_limits import ImageBounds, MediaLimits
from perdure.llm.message import LLMMessage, MediaPart, Segment, TextPart, split_segments
from perdure.llm.request import GenerationControls, LLMRequest, ToolDefinition
from perdure.runtime.turn import media
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
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
    ToolState,
    error_info,
)
from tests.fixtures import SESSION
from tests.support.inputs.images import inlined, picture

MODEL = ModelRef(id="m", provider_id="p")
FOREIGN = ModelRef(id="other", provider_id="q")
AT = Created(created=1)
ID = MessageID("msg_x")
EXCLUDED = Created(created=1, excluded=2)
HOSTED_TIMES = (stored.ToolTime(created=1), stored.ToolTime(created=1, excluded=2))
TOOL_TIMES = (*HOSTED_TIMES, stored.ToolTime(created=1, pruned=2))
PNG_DATA = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 8).decode()
PNG = f"data:image/png;base64,{PNG_DATA}"
LARGE = inlined(picture(90, 40))
TAKES = (
    media_limits.limits_for("openai"),
    media_limits.limits_for("anthropic", frozenset({"text"})),
    media_limits.limits_for("anthropic", frozenset({"text", "image", "pdf"})),
    MediaLimits(image=ImageBounds(width_max=50, height_max=50), parts_max=2, chars_max=1_000),
    MediaLimits(
        image=ImageBounds(width_max=50, height_max=50, resize=False),
        parts_max=1,
        chars_max=1,
        documents=True,
    ),
)
LAST_STEP = Segment((LLMMessage("system", (TextPart("the last step"),)),))
PDF_DATA = base64.b64encode(b"%PDF-1.7\n" + b"\0" * 8).decode()
PDF = f"data:application/pdf;base64,{PDF_DATA}"

texts = st.sampled_from(["", " ", "\n\t", "words", "<b> & ü 🌍 ", "\x00\x1b"]) | st.text(max_size=9)
uris = st.sampled_from(
    [
        PNG,
        LARGE,
        PDF,
        "data:image/png;base64,AAAA",
        "data:image/png;base64,!",
        "data:image/gif;base64,R0lGODlh",
        "data:image/jpeg;base64,/9j/4AAQ",
        "data:application/pdf;base64,AAAA",
        "data:application/pdf;base64,!",
        "data:text/plain,%20",
        "data:,x",
        "https://h/i.png",
        "http://h/i.png",
        "file:///x",
        "",
    ]
)
mimes = st.sampled_from(
    ["image/png", "image/gif", "image/jpeg", "text/plain", "application/pdf", "", "x"]
)
values: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, 0, "", " ", "x", [], {}, {"type": "x"}, [{"type": "text", "text": " "}]]
)
CALL_IDS = ("call_0", "call_1", "a.b", "", "ü", "tooluse_short", "x" * 99)
# A provider's own ids are unique in a conversation; drawn ones only look like them.
ALL_CALL_IDS = (*CALL_IDS, "toolu_short", "toolu_bdrk_", "tool_0", "tool_1")
call_ids = st.sampled_from(ALL_CALL_IDS)
names = st.sampled_from(["read", "functions.read", "", "x" * 90, "söme tool", "1st"])
contents = st.lists(
    st.builds(TextContent, texts) | st.builds(FileContent, uri=uris, mime=mimes), max_size=3
).map(tuple)
prompts = st.builds(
    stored.UserMessage,
    id=st.just(ID),
    time=st.sampled_from([AT, AT, EXCLUDED]),
    text=texts,
    files=st.lists(
        st.builds(FileAttachment, uri=uris, mime=mimes, name=st.just("a\nb")), max_size=7
    ).map(tuple),
    attached=st.just(UNSET)
    | st.lists(
        st.builds(AttachedContent, content=contents, file=st.sampled_from([UNSET, 0, 1, 99])),
        max_size=3,
    ).map(tuple),
)
asides: st.SearchStrategy[SessionMessage] = st.one_of(
    st.builds(stored.SystemMessage, id=st.just(ID), time=st.just(AT), text=texts),
    st.builds(
        stored.SyntheticMessage,
        id=st.just(ID),
        time=st.sampled_from([AT, EXCLUDED]),
        session_id=st.just(SESSION),
        text=texts,
    ),
    st.builds(
        stored.CompactionMessage,
        id=st.just(ID),
        time=st.sampled_from([AT, EXCLUDED]),
        reason=st.just("auto"),
        summary=texts,
        recent=texts,
    ),
    st.just(stored.ModelSwitchedMessage(id=ID, time=AT, model=MODEL)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a wire protocol keeps of its answers, sound and not. An `@` stands for the place."""

    namespace: str
    reasoning: Sequence[ProviderMetadata] = ()
    calls: Sequence[ProviderMetadata] = ()
    hosted_calls: Sequence[ProviderMetadata] = ()
    hosted_results: Sequence[ProviderMetadata] = ()
    hosted_values: Sequence[JsonValue] = ()
    hosted_ids: Sequence[str] = CALL_IDS
    options: Sequence[JsonObject] = ()
    ends_with_prompt: bool = False


inputs: st.SearchStrategy[JsonObject] = st.fixed_dictionaries({"n": st.integers(0, 9)})
structured: st.SearchStrategy[JsonObject] = st.fixed_dictionaries({"a": values})
states: st.SearchStrategy[ToolState] = st.one_of(
    st.builds(PendingState, input=st.sampled_from(['{"n":1}', '[{"n":1}]', "{", ""])),
    st.builds(RunningState, input=inputs, structured=structured, content=st.just(())),
    st.builds(
        CompletedState,
        input=inputs,
        content=contents,
        output_paths=st.just(()),
        structured=structured,
    ),
    st.builds(
        CompletedState,
        input=inputs,
        content=st.just(()),
        output_paths=st.just(()),
        structured=structured,
        result=values,
    ),
    st.builds(
        ErrorState,
        input=inputs,
        content=st.just(()),
        structured=structured,
        error=st.builds(error_info, texts),
    ),
)


def calls(kept: Kept) -> st.SearchStrategy[stored.ToolPart]:
    """Calls that were for us."""
    metadata = [UNSET, *kept.calls, {"openai": {"itemId": "fc_1"}}]
    providers = [UNSET, *(PartProvider(executed=False, metadata=one) for one in metadata)]
    return st.builds(
        stored.ToolPart,
        id=call_ids.map(ToolCallID),
        name=names,
        state=states,
        time=st.sampled_from(TOOL_TIMES),
        provider=st.sampled_from(providers),
    )


def hosted(kept: Kept) -> st.SearchStrategy[stored.ToolPart]:
    """Calls that the provider made itself."""
    came: list[JsonValue] = [*kept.hosted_values, [], None]
    found = st.builds(
        CompletedState,
        input=st.just({"query": "x"}),
        content=st.just(()),
        output_paths=st.just(()),
        structured=st.just({}),
        result=st.sampled_from([{"type": "json", "value": one} for one in came]),
    )
    return st.builds(
        stored.ToolPart,
        id=st.sampled_from(kept.hosted_ids).map(ToolCallID),
        name=st.just("web_search"),
        state=found | states,
        time=st.sampled_from(HOSTED_TIMES),
        provider=st.builds(
            PartProvider,
            executed=st.just(True),
            metadata=st.sampled_from([UNSET, *kept.hosted_calls]),
            result_metadata=st.sampled_from([UNSET, *kept.hosted_results]),
        ),
    )


def answers(kept: Kept) -> st.SearchStrategy[AssistantMessage]:
    metadata = st.sampled_from([UNSET, *kept.reasoning, {"openai": {"itemId": "rs_1"}}])
    parts = st.one_of(
        st.builds(stored.TextPart, id=st.just("t"), text=texts),
        st.builds(stored.ReasoningPart, id=st.just("r"), text=texts, provider_metadata=metadata),
        calls(kept),
        hosted(kept),
    )
    # A call's id is unique inside its message; the record of a turn sees to it.
    content = st.lists(
        parts,
        max_size=4,
        unique_by=lambda part: part.id if isinstance(part, stored.ToolPart) else object(),
    )
    return st.builds(
        AssistantMessage,
        id=st.just(ID),
        time=st.sampled_from([Span(created=1), Span(created=1), Span(created=1, excluded=2)]),
        agent=st.just("build"),
        model=st.sampled_from([MODEL, FOREIGN]),
        content=content.map(tuple),
        error=st.sampled_from([UNSET, UNSET, error_info("lost")]),
    )


def requests(kept: Kept) -> st.SearchStrategy[LLMRequest]:
    alternatives: JsonObject = {"anyOf": [{"properties": {"a": {"type": ["string", "null"]}}}]}
    tools = (ToolDefinition("read", "", alternatives), ToolDefinition("glob", "Finds.", {}))
    controls = GenerationControls(max_tokens=1500, temperature=1.0, top_k=3, seed=2**40)
    histories = st.lists(answers(kept) | prompts | asides, max_size=6)
    # The last word: a prompt, or the note of a last step, which is a run by itself.
    ends = prompts if kept.ends_with_prompt else st.sampled_from([None, LAST_STEP])
    return st.builds(
        LLMRequest,
        model=st.just(MODEL),
        system=st.lists(texts, max_size=3).map(tuple),
        segments=st.builds(_conversation, histories, ends, st.sampled_from(TAKES)),
        tools=st.sampled_from([(), tools]),
        tool_choice=st.sampled_from([None, "auto", "required", "none"]),
        generation=st.sampled_from([GenerationControls(), controls]),
        options=st.sampled_from([{kept.namespace: one} for one in ({}, *kept.options)]),
    )


def sent(lowered: Sequence[LLMMessage], takes: MediaLimits) -> tuple[Segment, ...]:
    """A conversation within what a model takes: perhaps little, perhaps no media at all."""
    instead = [_fitted(part, takes) for part in message_media.media_of(lowered)]
    runs, _ = media.replaced(split_segments(tuple(lowered)), instead, takes)
    return runs


@cache
def _fitted(part: MediaPart, takes: MediaLimits) -> MediaPart | TextPart:
    # Scaling takes a while, and there are few different parts.
    return media.fitted(part, takes)


def _conversation(
    history: list[SessionMessage], end: stored.UserMessage | Segment | None, takes: MediaLimits
) -> tuple[Segment, ...]:
    """As it is sent: lowered and within limits."""
    said = [*history, end] if isinstance(end, stored.UserMessage) else history
    numbered = [_placed(one, n) for n, one in enumerate(said)]
    lowered = tuple(part for message in numbered for part in history_to_llm.lower(message, MODEL))
    runs = sent(lowered, takes)
    return (*runs, end) if isinstance(end, Segment) else runs


def _placed(message: SessionMessage, number: int) -> SessionMessage:
    """With an id of its own, and with names of its own where a provider knows one only once."""
    named = replace(message, id=MessageID(f"msg_{number}"))
    if not isinstance(named, AssistantMessage):
        return named
    content = (_numbered(part, number, place) for place, part in enumerate(named.content))
    return replace(named, content=tuple(content))


def _numbered(part: AssistantPart, number: int, place: int) -> AssistantPart:
    # The pieces of one reasoning share a name; calls never do.
    shared = isinstance(part, stored.ReasoningPart)
    mark = b"%d" % number if shared else b"%d_%d" % (number, place)
    return codec.decode(type(part), codec.encode(part).replace(b"@", mark))
