"""A whole Session with each of thirteen providers: none refuses one of its requests."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from perdure.core.models.chat_dialects import choose_dialect
from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.message import split_segments
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.llm.request import GenerationControls, LLMRequest, ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from tests.contract.llm.dialects import sessions
from tests.contract.llm.dialects.rules import RULES
from tests.contract.llm.dialects.sessions import Native
from tests.contract.llm.protocols.anthropic import validator as anthropic
from tests.contract.llm.protocols.bedrock import validator as bedrock
from tests.contract.llm.protocols.gemini import validator as gemini
from tests.contract.llm.protocols.openai_responses import validator as responses

REQUESTS: Final = 6
"""Of the model itself: five answers of its own, and one more to come."""
READ: Final = ToolDefinition("read", "Reads.", {"type": "object", "properties": {"n": {}}})
CHAT_MODELS: Final = {"openrouter": "anthropic/claude-opus-4.5", "xai": "grok-4-fast-reasoning"}
THOUGHTS: Final = {
    "A picture.": "thought-1",
    "Let me see.": "thought-2",
    "One failed.": "thought-3",
    "Once more.": "thought-4",
}
"""What the model said -> what it thought before."""

Other = tuple[WireProtocol, str, Native, Callable[[JsonObject, bytes], list[str]]]
OTHERS: Final[Mapping[str, Other]] = {
    "anthropic": (
        ANTHROPIC_MESSAGES,
        "claude-opus-4-5",
        Native(reasoning={"anthropic": {"signature": "c2ln"}}),
        anthropic.faults,
    ),
    "bedrock": (
        BEDROCK_CONVERSE,
        "anthropic.claude-opus-4-8",
        Native(reasoning={"bedrock": {"signature": "c2ln"}}),
        lambda body, raw: bedrock.faults(body, raw, "anthropic.claude-opus-4-8"),
    ),
    "google": (
        GEMINI,
        "gemini-3-pro",
        Native(call={"google": {"thoughtSignature": "c2ln"}}),
        lambda body, raw: gemini.faults(body, raw, signing=True),
    ),
    "openai": (
        OPENAI_RESPONSES,
        "gpt-5",
        Native(reasoning={"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "sealed"}}),
        lambda body, _: responses.faults(body),
    ),
}


def bodies(
    protocol: WireProtocol, facts: ModelFacts, provider: str, native: Native
) -> list[tuple[JsonObject, bytes]]:
    model = ModelRef(id=facts.name, provider_id=provider)
    made: list[tuple[JsonObject, bytes]] = []
    for messages in sessions.requests_of(model, native):
        request = LLMRequest(
            model=model,
            system=("Be brief.",),
            segments=split_segments(messages),
            tools=(READ,),
            generation=GenerationControls(max_tokens=1_000, temperature=0.5),
            options={"openai": {"promptCacheKey": "ses_1"}},
        )
        raw = b"".join(wire_protocol.encode(protocol, request, facts))
        made.append((codec.decode_any(raw), raw))
    assert len(made) == REQUESTS
    return made


@pytest.mark.parametrize("provider", RULES)
def test_a_chat_provider_takes_every_request_of_a_session(provider: str) -> None:
    name = CHAT_MODELS.get(provider, "m")
    dialect = choose_dialect(name, url=None, names=(provider,))
    native = Native(reasoning={"openai_compatible": {"reasoning_details": []}})
    facts = ModelFacts(name=name, dialect=dialect)
    given = native if provider == "openrouter" else Native()
    for body, _ in bodies(OPENAI_CHAT, facts, provider, given):
        assert RULES[provider].faults(body, THOUGHTS) == []


@pytest.mark.parametrize("provider", OTHERS)
def test_a_provider_with_its_own_protocol_takes_every_request_of_a_session(provider: str) -> None:
    protocol, name, native, faults = OTHERS[provider]
    for body, raw in bodies(protocol, ModelFacts(name=name), provider, native):
        assert faults(body, raw) == []


def test_the_rules_find_what_a_strict_provider_refuses() -> None:
    """What went to every provider before there were dialects."""
    plain = choose_dialect("m", url=None, names=(), entries=())
    facts = ModelFacts(name="m", dialect=plain.with_fields({"prompt_cache_key": True}))
    for provider in ("groq", "cerebras", "mistral", "nvidia"):
        found = [
            fault
            for body, _ in bodies(OPENAI_CHAT, facts, provider, Native())
            for fault in RULES[provider].faults(body, THOUGHTS)
        ]
        assert "field prompt_cache_key" in found
