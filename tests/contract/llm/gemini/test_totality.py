"""Whatever a Session has stored, the request made of it is one that the provider accepts.

These are few and shrink, the many are in test_drawn_histories; `PERDURE_EXAMPLES` raises both.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.llm import wire_protocol
from perdure.llm.protocols.gemini import GEMINI
from perdure.llm.request import LLMRequest
from perdure.llm.wire_protocol import ModelFacts
from perdure.schema import codec
from tests.contract.llm.gemini.validator import faults
from tests.contract.llm.stored_histories import Native, requests
from tests.requirements import requirement

EXAMPLES = int(os.environ.get("PERDURE_EXAMPLES", "400"))
RAN = {"outcome": "OUTCOME_OK", "output": "4"}
NATIVE = Native(
    namespace="google",
    reasoning=(
        {"google": {"thoughtSignature": "c2ln"}},
        {"google": {"thoughtSignature": ""}},
        {"google": {"thoughtSignature": 5}},
    ),
    calls=(
        {"google": {"thoughtSignature": "c2ln", "id": "fc_1"}},
        {"google": {"id": ""}},
    ),
    hosted_calls=({"google": {"part": "executableCode", "thoughtSignature": "c2ln"}},),
    hosted_results=(
        {"google": {"part": "codeExecutionResult"}},
        {"google": {"part": "codeExecutionResult", "content": RAN}},
        {"google": {"part": "executableCode"}},
    ),
    hosted_values=(RAN, "x"),
    call_ids=("tool_0", "tool_1"),
    options=({"thinkingConfig": {"includeThoughts": True}}, {"safetySettings": []}),
)


@requirement("S161", "S197")
@pytest.mark.timeout(max(120, EXAMPLES // 10))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(requests(NATIVE), st.sampled_from(["gemini-2.5-pro", "gemini-3.1-pro-preview"]))
def test_no_history_makes_a_request_that_is_refused(request: LLMRequest, model: str) -> None:
    raw = b"".join(wire_protocol.encode(GEMINI, request, ModelFacts(name=model)))
    assert faults(codec.decode_any(raw), raw, signing=model != "gemini-2.5-pro") == []
