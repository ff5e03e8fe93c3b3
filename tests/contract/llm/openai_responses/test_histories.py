"""Any history that can be stored makes a request that the provider's rules accept.

`PERDURE_EXAMPLES` asks for another number of histories, and then for new ones each time.
"""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from perdure.core import lowering
from perdure.llm import wire_protocol
from perdure.llm.protocols.openai_responses import OPENAI_RESPONSES
from perdure.llm.request import LLMRequest
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema import codec
from perdure.schema import message as stored
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.message import AssistantMessage, AssistantPart, Created, SessionMessage, Span
from perdure.schema.model import ModelRef
from perdure.schema.prompt import FileAttachment
from perdure.schema.tool import (
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
from tests.contract.llm.openai_responses import validator
from tests.contract.llm.openai_responses.recordings import SEARCH
from tests.contract.llm.stored_histories import LARGE, PDF, TAKES, sent
from tests.requirements import requirement

ASKED: Final = os.environ.get("PERDURE_EXAMPLES")
PARTS: Final = 5
EXAMPLES: Final = settings(
    max_examples=-(-int(ASKED or "400") // PARTS),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

OURS = ModelRef(id="m", provider_id="p")
OTHER = ModelRef(id="other", provider_id="q")
AT = Created(created=1)
PNG = "data:image/png;base64,iVBORw0KGgo="
MIMES = ["image/png", "text/plain", "application/pdf", ""]

texts = st.sampled_from(["", " ", "words", "<b>&", "ä🌍", "\x00", '{"a":1}', "[", "</b>"])
objects: st.SearchStrategy[JsonObject] = st.sampled_from([{}, {"a": 1}, {"": ["ä"], "b": None}])
uris = st.sampled_from(
    [PNG, LARGE, PDF, "data:,x", "data:image/png;base64,!", "https://h/i.png", "file:///x"]
)
contents = st.lists(
    texts.map(lambda text: TextContent(text=text))
    | st.builds(FileContent, uris | texts, st.sampled_from(MIMES), texts),
    max_size=3,
).map(tuple)
files = st.lists(
    st.builds(FileAttachment, uris | texts, st.sampled_from(MIMES), texts), max_size=2
).map(tuple)


def metadata(prefix: str) -> st.SearchStrategy[ProviderMetadata | UnsetType]:
    """Of our items, stored or not, sealed or not; odd ones; those of others; none."""
    ids = [f"{prefix}_0", f"{prefix}_1", prefix + "x" * 80]
    sealed = {"reasoningEncryptedContent": "sealed"}
    kinds: list[JsonObject] = [{}, sealed, {"stored": True}, sealed | {"stored": True}]
    sound = [{"itemId": item_id} | kind for item_id in ids for kind in kinds]
    odd: list[JsonObject] = [
        {},
        {"itemId": 5},
        {"itemId": "", "stored": True},
        {"itemId": "ö ö", "stored": True},
        {"itemId": ids[0], "stored": "yes", "reasoningEncryptedContent": 5},
        {"itemId": ids[0], "reasoningEncryptedContent": ""},
    ]
    ours: list[ProviderMetadata] = [{"openai": fields} for fields in (*sound, *odd)]
    return st.sampled_from([*ours, {"anthropic": {"signature": "s"}}, UNSET])


@st.composite
def states(draw: st.DrawFn, item_id: str) -> ToolState:
    kind = draw(st.sampled_from(["completed", "error", "running", "pending"]))
    if kind == "pending":
        return PendingState(input=draw(texts))
    asked, structured, content = draw(objects), draw(objects), draw(contents)
    if kind == "running":
        return RunningState(input=asked, structured=structured, content=content)
    if kind == "error":
        why = error_info(draw(texts))
        return ErrorState(input=asked, content=content, structured=structured, error=why)
    kept = {"type": "json", "value": SEARCH | {"id": item_id}}
    result = draw(st.sampled_from([UNSET, None, kept, {"type": "text", "value": "x"}]))
    return CompletedState(
        input=asked, content=content, output_paths=(), structured=structured, result=result
    )


@st.composite
def calls(draw: st.DrawFn, turn: int, place: int) -> stored.ToolPart:
    hosted = draw(st.booleans())
    prefix = f"{'ws' if hosted else 'fc'}_{turn}_{place}"
    native = draw(metadata(prefix))
    # Ids are unique in an answer, and may repeat from turn to turn.
    call_id = draw(st.sampled_from([f"call_{place}", f"{place}" * 80]))
    return stored.ToolPart(
        id=ToolCallID(call_id),
        name=draw(st.sampled_from(["read", "web_search", "sören's", "", "n" * 90])),
        state=draw(states(f"{prefix}_0")),
        time=stored.ToolTime(created=1),
        provider=draw(st.sampled_from([UNSET, PartProvider(hosted, native)])),
    )


@st.composite
def answers(draw: st.DrawFn, turn: int) -> AssistantMessage:
    content: list[AssistantPart] = []
    for place in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["text", "reasoning", "call"]))
        if kind == "text":
            content.append(stored.TextPart(id=f"t{place}", text=draw(texts)))
        elif kind == "call":
            content.append(draw(calls(turn, place)))
        else:
            native = draw(metadata(f"rs_{turn}"))
            thought = stored.ReasoningPart(
                id=f"r{place}", text=draw(texts), provider_metadata=native
            )
            content.append(thought)
    return AssistantMessage(
        id=MessageID("msg_a"),
        time=Span(created=1),
        agent="build",
        model=draw(st.sampled_from([OURS, OURS, OTHER])),
        content=tuple(content),
        error=draw(st.sampled_from([UNSET, UNSET, error_info("lost")])),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[SessionMessage]:
    history: list[SessionMessage] = [
        stored.UserMessage(id=MessageID("msg_u"), time=AT, text=draw(texts), files=draw(files))
    ]
    for turn in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["user", "system", "answer", "answer"]))
        text = draw(texts)
        if kind == "answer":
            history.append(draw(answers(turn)))
        elif kind == "system":
            history.append(stored.SystemMessage(id=MessageID("msg_s"), time=AT, text=text))
        else:
            history.append(stored.UserMessage(id=MessageID("msg_u"), time=AT, text=text))
    return history


def is_accepted(history: list[SessionMessage], system_role: bool) -> None:
    lowered = tuple(part for message in history for part in lowering.lower(message, OURS))
    # As it is sent, within what some model takes: which one is drawn with the history.
    runs = sent(lowered, TAKES[len(lowered) % len(TAKES)])
    request = LLMRequest(model=OURS, system=(), runs=runs)
    facts = ModelFacts(name="gpt-5", system_role=system_role)
    body = b"".join(wire_protocol.encode(OPENAI_RESPONSES, request, facts))
    assert validator.faults(codec.decode_any(body)) == []


@requirement("S161", "S197", "S198")
@pytest.mark.timeout(0 if ASKED else 120)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_history_is_refused(part: int) -> None:
    check = EXAMPLES(given(histories(), st.booleans())(is_accepted))
    (check if ASKED else seed(part)(check))()
