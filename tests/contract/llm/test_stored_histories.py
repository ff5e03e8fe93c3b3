"""Whatever a Session has stored, the request made of it is one that the provider accepts.

These are few and shrink, the many are in test_drawn_histories; `PERDURE_EXAMPLES` raises both.
"""

import os
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.core.request import history_to_llm
from perdure.llm.message import split_segments
from perdure.llm.request import LLMRequest
from perdure.schema.session.message import AssistantMessage
from tests.contract.llm.providers import PROVIDERS
from tests.contract.llm.stored_histories import MODEL, answers, requests
from tests.requirements import requirement

EXAMPLES: Final = int(os.environ.get("PERDURE_EXAMPLES", "80"))
REQUESTS: Final = {name: requests(provider.kept) for name, provider in PROVIDERS.items()}
SLOW: Final = [HealthCheck.too_slow, HealthCheck.data_too_large]


@requirement("S161", "S197", "S198")
@pytest.mark.timeout(max(120, EXAMPLES // 10))
@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=SLOW)
@given(st.data(), st.integers(0, 7))
def test_no_history_makes_a_request_that_is_refused(
    provider: str, data: st.DataObject, way: int
) -> None:
    request = data.draw(REQUESTS[provider])
    assert PROVIDERS[provider].faults_of(request, way=way) == []


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=SLOW)
@given(
    answers(PROVIDERS["anthropic"].kept).filter(lambda one: bool(history_to_llm.lower(one, MODEL)))
)
def test_an_answer_in_the_middle_of_a_tool_loop_is_accepted(answer: AssistantMessage) -> None:
    (run,) = split_segments(history_to_llm.lower(answer, MODEL))
    faults = PROVIDERS["anthropic"].faults_of(LLMRequest(model=MODEL, system=(), runs=(run,)))
    unanswered = not any(message.role == "tool" for message in run.messages)
    assert {*faults} <= ({"the last message is the assistant's"} if unanswered else {*()})
