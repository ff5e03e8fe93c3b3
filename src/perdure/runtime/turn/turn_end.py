"""How a turn ended, and the reasons that a failed step gives for it."""

from typing import Final

from perdure.core.session.retry import Retry
from perdure.llm.error import LLMError
from perdure.schema.value import Value

TURN_INTERRUPTED: Final = "Provider turn interrupted"
TURN_BROKEN: Final = "Stopped: an internal error"
TURN_OUT_OF_MEMORY: Final = "Stopped: the server had no memory left for the answer"
TURN_DECLINED: Final = "Stopped: what a tool asked for was declined"


class TurnEnd(Value, kw_only=True):
    """How a turn ended."""

    step: int
    """Which turn since input was last promoted this was."""
    continues: bool = False
    """Whether the model waits for the results of its tool calls, or to go on."""
    paused: bool = False
    """Whether the provider paused in the middle of its answer, and goes on when asked again."""
    answered: bool = False
    """Whether the answer is complete."""
    declined: bool = False
    """Whether a person declined what a tool asked for."""
    overflow: str | None = None
    """The provider's message that the request is too large. Nothing was recorded."""
    failed: LLMError | None = None
    """A failure that may pass or be mended, before anything was recorded."""
    retry: Retry | None = None
    """When the request is sent again."""
    handed_over: bool = False
    """Whether another model is asked at once. That is recorded."""
