"""Whatever a Session has stored, the request made of it is one that the service accepts.

These are few and shrink, the many are in test_drawn_histories; `PERDURE_EXAMPLES` raises both.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.llm import wire_protocol
from perdure.llm.protocols.bedrock_converse import BEDROCK_CONVERSE
from perdure.llm.request import LLMRequest
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema import codec
from tests.contract.llm.bedrock_converse.recordings import FOUND
from tests.contract.llm.bedrock_converse.validator import faults
from tests.contract.llm.stored_histories import Native, requests
from tests.requirements import requirement

EXAMPLES = int(os.environ.get("PERDURE_EXAMPLES", "400"))
NATIVE = Native(
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
        {"bedrock": {"type": "", "status": "error", "content": FOUND}},
        {"bedrock": {"type": 5}},
        {"openai": {"itemId": "ws_1"}},
    ),
    hosted_values=(FOUND, ["x"], [{}]),
    # Ids of its own are unique in a conversation, so histories made at random have none of them.
    call_ids=("tooluse_x", "toolu_bdrk_"),
    options=(
        {"reasoningConfig": {"type": "enabled", "budgetTokens": 2000}},
        {"reasoningConfig": {"type": "adaptive"}},
        {"additionalModelRequestFields": {"anthropic_beta": ["x"]}},
    ),
)
MODELS = (
    "anthropic.claude-opus-4-8",
    "eu.anthropic.claude-3-haiku-20240307-v1:0",
    "amazon.nova-pro-v1:0",
    "meta.llama3-3-70b-instruct-v1:0",
)


@requirement("S161", "S197")
@pytest.mark.timeout(max(120, EXAMPLES // 10))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(requests(NATIVE), st.sampled_from(MODELS), st.sampled_from([0, 64_000]))
def test_no_history_makes_a_request_that_is_refused(
    request: LLMRequest, model: str, limit: int
) -> None:
    facts = ModelFacts(name=model, output_limit=limit)
    raw = b"".join(wire_protocol.encode(BEDROCK_CONVERSE, request, facts))
    assert faults(codec.decode_any(raw), raw, model) == []
