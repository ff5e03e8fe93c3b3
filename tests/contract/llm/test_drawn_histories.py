"""No history makes a request that a provider refuses: 20,000 of them for each wire protocol.

`PERDURE_EXAMPLES` asks for another number. A failure names its seed: `request(KEPT, seed)` is it.
"""

import os
from collections.abc import Callable
from typing import Final

import pytest

from perdure.llm import wire_protocol
from perdure.llm.constrained_tools import constrained
from perdure.llm.protocols.anthropic_messages import ANTHROPIC_MESSAGES
from perdure.llm.protocols.bedrock_converse import BEDROCK_CONVERSE
from perdure.llm.protocols.gemini import GEMINI
from perdure.llm.protocols.openai_chat import OPENAI_CHAT
from perdure.llm.protocols.openai_responses import OPENAI_RESPONSES
from perdure.llm.request import LLMRequest
from perdure.llm.wire_protocol import ModelFacts, WireProtocol
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.anthropic_messages import recordings as anthropic_recordings
from tests.contract.llm.anthropic_messages import validator as anthropic
from tests.contract.llm.bedrock_converse import recordings as bedrock_recordings
from tests.contract.llm.bedrock_converse import validator as bedrock
from tests.contract.llm.drawn_histories import Kept, request
from tests.contract.llm.gemini import validator as gemini
from tests.contract.llm.openai_chat import validator as chat
from tests.contract.llm.openai_responses import validator as responses
from tests.contract.llm.openai_responses.recordings import SEARCH
from tests.requirements import requirement

EXAMPLES: Final = int(os.environ.get("PERDURE_EXAMPLES", "20000"))
PARTS: Final = 4
BEDROCK_MODELS: Final = (
    "anthropic.claude-opus-4-8",
    "amazon.nova-pro-v1:0",
    "meta.llama3-3-70b-instruct-v1:0",
)
RAN: Final = {"outcome": "OUTCOME_OK", "output": "4"}
SEALED: Final = {"reasoningEncryptedContent": "sealed"}

ANTHROPIC: Final = Kept(
    namespace="anthropic",
    reasoning=(
        {"anthropic": {"signature": "c2ln"}},
        {"anthropic": {"redactedData": "RW1"}},
        {"anthropic": {"signature": ""}},
    ),
    hosted_results=({"anthropic": {"type": "web_search_tool_result"}}, {"openai": {}}),
    hosted_values=(anthropic_recordings.FOUND, None),
    hosted_ids=("srvtoolu_1", "srvtoolu_2", "ws_1", "srvtoolu_"),
    options=(
        {"thinking": {"type": "enabled", "budgetTokens": 2000}},
        {"thinking": {"type": "adaptive"}},
    ),
    ends_with_prompt=True,
)
BEDROCK: Final = Kept(
    namespace="bedrock",
    reasoning=(
        {"bedrock": {"signature": "c2ln"}},
        {"bedrock": {"redactedData": "RW1"}},
        {"bedrock": {"signature": ""}},
    ),
    calls=({"bedrock": {}},),
    hosted_calls=({"bedrock": {}},),
    hosted_results=(
        {"bedrock": {"type": "nova_grounding_result"}},
        {"bedrock": {"type": 5}},
        {"openai": {"itemId": "ws_1"}},
    ),
    hosted_values=(bedrock_recordings.FOUND, ["x"], [{}], None),
    options=({"reasoningConfig": {"type": "enabled", "budgetTokens": 2000}},),
)
GOOGLE: Final = Kept(
    namespace="google",
    reasoning=({"google": {"thoughtSignature": "c2ln"}}, {"google": {"thoughtSignature": 5}}),
    calls=({"google": {"thoughtSignature": "c2ln", "id": "fc_1"}}, {"google": {"id": ""}}),
    hosted_calls=({"google": {"part": "executableCode", "thoughtSignature": "c2ln"}},),
    hosted_results=(
        {"google": {"part": "codeExecutionResult"}},
        {"google": {"part": "codeExecutionResult", "content": RAN}},
        {"google": {"part": "executableCode"}},
    ),
    hosted_values=(RAN, "x", None),
    options=({"thinkingConfig": {"includeThoughts": True}}, {"safetySettings": []}),
)
OPENAI: Final = Kept(
    namespace="openai",
    reasoning=(
        {"openai": {"itemId": "rs_@"} | SEALED},
        {"openai": {"itemId": "rs_@", "stored": True}},
        {"openai": {"itemId": "ö ö", "stored": True}},
        {"openai": {"itemId": 5}},
    ),
    calls=({"openai": {"itemId": "fc_@", "stored": True}}, {"openai": {"itemId": "fc_@"}}),
    hosted_calls=({"openai": {"itemId": "ws_@", "stored": True}}, {"openai": {}}),
    hosted_values=(SEARCH | {"id": "ws_@"}, None),
)
CHAT: Final = Kept(namespace="openai_compatible", options=({"reasoningEffort": "low"},))

Check = Callable[[LLMRequest, int], list[str]]


def encoded(
    protocol: WireProtocol, asked: LLMRequest, facts: ModelFacts
) -> tuple[JsonObject, bytes]:
    raw = b"".join(wire_protocol.encode(protocol, asked, facts))
    return codec.decode_any(raw), raw


def by_anthropic(asked: LLMRequest, seed: int) -> list[str]:
    facts = ModelFacts(name="m", system_role=bool(seed % 2))
    return anthropic.faults(*encoded(ANTHROPIC_MESSAGES, asked, facts))


def by_bedrock(asked: LLMRequest, seed: int) -> list[str]:
    model = BEDROCK_MODELS[seed % len(BEDROCK_MODELS)]
    facts = ModelFacts(name=model, output_limit=64_000 * (seed % 2))
    return bedrock.faults(*encoded(BEDROCK_CONVERSE, asked, facts), model)


def by_google(asked: LLMRequest, seed: int) -> list[str]:
    signing = bool(seed % 2)
    model = "gemini-3.1-pro-preview" if signing else "gemini-2.5-pro"
    return gemini.faults(*encoded(GEMINI, asked, ModelFacts(name=model)), signing=signing)


def by_openai(asked: LLMRequest, seed: int) -> list[str]:
    facts = ModelFacts(name="gpt-5", system_role=bool(seed % 2))
    return responses.faults(encoded(OPENAI_RESPONSES, asked, facts)[0])


def by_chat(asked: LLMRequest, seed: int) -> list[str]:
    protocol = constrained(OPENAI_CHAT) if seed % 2 else OPENAI_CHAT
    body, _ = encoded(protocol, asked, ModelFacts(name="m"))
    found = chat.faults(body)
    if seed % 2 and ("tools" in body or any("tool_calls" in one for one in body["messages"])):
        found.append("a native call for a model that has none")
    return found


PROTOCOLS: Final[dict[str, tuple[Kept, Check]]] = {
    "anthropic": (ANTHROPIC, by_anthropic),
    "bedrock": (BEDROCK, by_bedrock),
    "chat": (CHAT, by_chat),
    "gemini": (GOOGLE, by_google),
    "responses": (OPENAI, by_openai),
}


@requirement("S161", "S197", "S198")
@pytest.mark.timeout(max(300, EXAMPLES // 20))
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_history_is_refused(protocol: str, part: int) -> None:
    kept, check = PROTOCOLS[protocol]
    seeds = range(part, EXAMPLES, PARTS)
    refused = ((seed, found) for seed in seeds if (found := check(request(kept, seed), seed)))
    assert next(refused, None) is None
