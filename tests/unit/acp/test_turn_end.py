"""How the work of a prompt ended, as an editor is told."""

import pytest
from msgspec import UNSET

from perdure.acp.turn_end import Failed, NotBegun, Stopped, TurnEnd, find_end
from perdure.core.session.budget import Budget, Spent, check_budget
from perdure.schema.ids import MessageID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import AssistantMessage, Created, Span, UserMessage
from perdure.schema.session.tool import error_info

PROMPT = MessageID("msg_prompt")
BUDGET = check_budget(Budget(cost=1.0), Spent(cost=2.0, tokens=0, turns=0)) or ""


def _answer(finish: str | None = None, failure: str | None = None) -> AssistantMessage:
    return AssistantMessage(
        id=MessageID("msg_answer"),
        time=Span(created=1, completed=2),
        agent="build",
        model=ModelRef(id="m", provider_id="p"),
        content=(),
        finish=UNSET if finish is None else finish,
        error=UNSET if failure is None else error_info(failure),
    )


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (_answer("stop"), Stopped("end_turn")),
        (_answer("tool-calls"), Stopped("end_turn")),
        (_answer("length"), Stopped("max_tokens")),
        (_answer("content-filter"), Stopped("refusal")),
        (_answer("error", "Provider turn interrupted"), Stopped("cancelled")),
        (_answer("error", BUDGET), Stopped("max_turn_requests")),
        (_answer("error", "429: too many requests"), Failed("429: too many requests")),
    ],
)
def test_each_end_has_its_word(answer: AssistantMessage, end: TurnEnd) -> None:
    prompt = UserMessage(id=PROMPT, time=Created(created=0), text="go")
    assert find_end([_answer("length"), prompt, _answer("stop"), answer], PROMPT) == end
    assert find_end([answer, prompt], PROMPT) == Stopped("cancelled")
    assert find_end([answer], PROMPT) == NotBegun()
