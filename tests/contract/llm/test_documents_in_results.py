"""A tool's result with a document, in a history that any model may be asked with later."""

import pytest

from perdure.core.request import history_to_llm, media_limits
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol, encode
from perdure.llm.message import split_segments
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.llm.request import Dialect, LLMRequest
from perdure.schema.ids import ToolCallID
from perdure.schema.session import message as stored
from perdure.schema.session.message import AssistantMessage, Span
from perdure.schema.session.tool import CompletedState, FileContent, TextContent
from tests.contract.llm.stored_histories import AT, ID, MODEL, PDF, PDF_DATA

PROTOCOLS: dict[Dialect, tuple[WireProtocol, str]] = {
    "anthropic": (ANTHROPIC_MESSAGES, "claude-opus-4-8"),
    "bedrock": (BEDROCK_CONVERSE, "anthropic.claude-opus-4-8"),
    "google": (GEMINI, "gemini-2.5-pro"),
    "openai": (OPENAI_RESPONSES, "gpt-5"),
    "openai_compatible": (OPENAI_CHAT, "m"),
}


def asked() -> LLMRequest:
    content = (TextContent("a paper"), FileContent(uri=PDF, mime="application/pdf", name="a.pdf"))
    read = stored.ToolPart(
        id=ToolCallID("call_1"),
        name="read",
        state=CompletedState(
            input={"path": "a.pdf"}, content=content, output_paths=(), structured={}
        ),
        time=stored.ToolTime(created=1),
    )
    history = (
        stored.UserMessage(id=ID, time=AT, text="read it"),
        AssistantMessage(id=ID, time=Span(created=1), agent="build", model=MODEL, content=(read,)),
        stored.UserMessage(id=ID, time=AT, text="and now?"),
    )
    lowered = tuple(part for one in history for part in history_to_llm.lower(one, MODEL))
    return LLMRequest(model=MODEL, system=(), runs=split_segments(lowered))


@pytest.mark.parametrize("family", PROTOCOLS)
def test_a_document_is_sent_or_named(family: Dialect) -> None:
    protocol, name = PROTOCOLS[family]
    raw = b"".join(encode(protocol, asked(), ModelFacts(name=name)))
    # What the read tool is told of a model is what its wire protocol does.
    shows = media_limits.limits_for(family, frozenset({"text", "pdf"})).reads_documents
    assert (PDF_DATA.encode() in raw) is shows
    assert (b"[Attachment left out: a.pdf" in raw) is not shows
    assert b"a paper" in raw
