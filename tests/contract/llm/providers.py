"""Providers as they take requests: which models are asked, and what each would refuse.

Also what a Session keeps of their answers, sound and not, for histories that are made of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from perdure.llm.encoding import wire_protocol
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.llm.protocols.gemini.request import GEMINI
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.llm.request import LLMRequest
from perdure.llm.tool_fallback.json_schema import with_json_schema
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.protocols.anthropic import recordings as anthropic_recordings
from tests.contract.llm.protocols.anthropic import validator as anthropic
from tests.contract.llm.protocols.bedrock import recordings as bedrock_recordings
from tests.contract.llm.protocols.bedrock import validator as bedrock
from tests.contract.llm.protocols.gemini import validator as gemini
from tests.contract.llm.protocols.openai_chat import validator as chat
from tests.contract.llm.protocols.openai_responses import validator as responses
from tests.contract.llm.protocols.openai_responses.recordings import SEARCH
from tests.contract.llm.stored_histories import Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    models: Sequence[tuple[WireProtocol, ModelFacts]]
    refuses: Callable[[JsonObject, bytes, ModelFacts], list[str]]
    """What it would refuse in a body, which is given parsed and as it is sent."""
    kept: Kept

    def body_of(self, asked: LLMRequest, *, way: int = 0) -> JsonObject:
        """What one of its models is sent; it must be acceptable."""
        body, faults = self._asked(asked, way)
        assert faults == []
        return body

    def faults_of(self, asked: LLMRequest, *, way: int = 0) -> list[str]:
        return self._asked(asked, way)[1]

    def _asked(self, asked: LLMRequest, way: int) -> tuple[JsonObject, list[str]]:
        protocol, facts = self.models[way % len(self.models)]
        raw = b"".join(wire_protocol.encode(protocol, asked, facts))
        body: JsonObject = codec.decode_any(raw)
        return body, self.refuses(body, raw, facts)


def _chat_refuses(body: JsonObject, _: bytes, facts: ModelFacts) -> list[str]:
    found = chat.faults(body)
    if facts is CONSTRAINED and (
        "tools" in body or any("tool_calls" in one for one in body["messages"])
    ):
        found.append("a native call for a model that has none")
    return found


CONSTRAINED: Final = ModelFacts(name="no-native-calls")
BEDROCK_MODELS: Final = (
    "anthropic.claude-opus-4-8",
    "eu.anthropic.claude-3-haiku-20240307-v1:0",
    "amazon.nova-pro-v1:0",
    "meta.llama3-3-70b-instruct-v1:0",
)
UNSIGNED: Final = "gemini-2.5-pro"
"""A model that takes calls without a signature."""
RAN: Final = {"outcome": "OUTCOME_OK", "output": "4"}
SEALED: Final = {"reasoningEncryptedContent": "sealed"}

PROVIDERS: Final[Mapping[str, Provider]] = {
    "anthropic": Provider(
        models=[
            (ANTHROPIC_MESSAGES, ModelFacts(name="m", system_role=native))
            for native in (False, True)
        ],
        refuses=lambda body, raw, _: anthropic.faults(body, raw),
        kept=Kept(
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
        ),
    ),
    "bedrock": Provider(
        models=[
            (BEDROCK_CONVERSE, ModelFacts(name=name, output_limit=limit))
            for name, limit in product(BEDROCK_MODELS, (0, 64_000))
        ],
        refuses=lambda body, raw, facts: bedrock.faults(body, raw, facts.name),
        kept=Kept(
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
                {"bedrock": {"type": "", "status": "error", "content": bedrock_recordings.FOUND}},
                {"bedrock": {"type": 5}},
                {"openai": {"itemId": "ws_1"}},
            ),
            hosted_values=(bedrock_recordings.FOUND, ["x"], [{}], None),
            options=(
                {"reasoningConfig": {"type": "enabled", "budgetTokens": 2000}},
                {"reasoningConfig": {"type": "adaptive"}},
                {"additionalModelRequestFields": {"anthropic_beta": ["x"]}},
            ),
        ),
    ),
    "chat": Provider(
        models=[
            (OPENAI_CHAT, ModelFacts(name="m")),
            (with_json_schema(OPENAI_CHAT), CONSTRAINED),
        ],
        refuses=_chat_refuses,
        kept=Kept(namespace="openai_compatible", options=({"reasoningEffort": "low"},)),
    ),
    "gemini": Provider(
        models=[(GEMINI, ModelFacts(name=name)) for name in (UNSIGNED, "gemini-3.1-pro-preview")],
        refuses=lambda body, raw, facts: gemini.faults(body, raw, signing=facts.name != UNSIGNED),
        kept=Kept(
            namespace="google",
            reasoning=(
                {"google": {"thoughtSignature": "c2ln"}},
                {"google": {"thoughtSignature": ""}},
                {"google": {"thoughtSignature": 5}},
            ),
            calls=({"google": {"thoughtSignature": "c2ln", "id": "fc_1"}}, {"google": {"id": ""}}),
            hosted_calls=({"google": {"part": "executableCode", "thoughtSignature": "c2ln"}},),
            hosted_results=(
                {"google": {"part": "codeExecutionResult"}},
                {"google": {"part": "codeExecutionResult", "content": RAN}},
                {"google": {"part": "executableCode"}},
            ),
            hosted_values=(RAN, "x", None),
            options=({"thinkingConfig": {"includeThoughts": True}}, {"safetySettings": []}),
        ),
    ),
    "responses": Provider(
        models=[
            (OPENAI_RESPONSES, ModelFacts(name="gpt-5", system_role=native))
            for native in (False, True)
        ],
        refuses=lambda body, _, __: responses.faults(body),
        kept=Kept(
            namespace="openai",
            reasoning=(
                {"openai": {"itemId": "rs_@"}},
                {"openai": {"itemId": "rs_@"} | SEALED},
                {"openai": {"itemId": "rs_@", "stored": True}},
                {"openai": {"itemId": "rs_@", "stored": True} | SEALED},
                {"openai": {"itemId": "rs_@" + "x" * 80, "stored": True}},
                {"openai": {"itemId": "rs_@", "reasoningEncryptedContent": ""}},
                {"openai": {"itemId": "rs_@", "stored": "yes", "reasoningEncryptedContent": 5}},
                {"openai": {"itemId": "", "stored": True}},
                {"openai": {"itemId": "ö ö", "stored": True}},
                {"openai": {"itemId": 5}},
                {"openai": {}},
                {"anthropic": {"signature": "s"}},
            ),
            calls=(
                {"openai": {"itemId": "fc_@", "stored": True}},
                {"openai": {"itemId": "fc_@"}},
                {"openai": {"itemId": "fc_@" + "x" * 80, "stored": True}},
                {"openai": {"itemId": "ö ö", "stored": True}},
            ),
            hosted_calls=(
                {"openai": {"itemId": "ws_@", "stored": True}},
                {"openai": {"itemId": "ws_@"}},
                {"openai": {}},
            ),
            hosted_results=(
                {"openai": {"itemId": "ws_@"}},
                {"openai": {"itemId": "ws_@", "stored": True}},
            ),
            hosted_values=(SEARCH | {"id": "ws_@"}, None),
        ),
    ),
}
