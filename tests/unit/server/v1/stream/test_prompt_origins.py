"""Which prompts came by V1: known while they are admitted and afterwards, within a bound."""

from perdure.schema.ids import MessageID, SessionID
from perdure.server.v1.stream.prompt_origins import PromptOrigins

ONE, OTHER = SessionID("ses_1"), SessionID("ses_2")


def test_a_prompt_is_known_from_before_its_admission() -> None:
    origins = PromptOrigins()
    with origins.admitting(ONE) as remember, origins.admitting(ONE):
        assert origins.came_by_v1(ONE, "msg_before")
        assert not origins.came_by_v1(OTHER, "msg_before")
        remember(MessageID("msg_1"))
    assert origins.came_by_v1(ONE, "msg_1")
    assert not origins.came_by_v1(ONE, "msg_before")


def test_the_oldest_prompts_are_forgotten() -> None:
    origins = PromptOrigins(prompts_max=2)
    with origins.admitting(ONE) as remember:
        for number in range(3):
            remember(MessageID(f"msg_{number}"))
    assert [origins.came_by_v1(ONE, f"msg_{number}") for number in range(3)] == [False, True, True]
