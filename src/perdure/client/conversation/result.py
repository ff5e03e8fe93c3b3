"""The result of a prompt: messages of the model, results of tools, cost, and why it failed."""

from typing import Generic, TypeVar

from msgspec import UNSET

from perdure.schema.models.model import NO_TOKENS, TokenUsage
from perdure.schema.session.message import AssistantMessage, SessionMessage, TextPart
from perdure.schema.value import Value

T_co = TypeVar("T_co", covariant=True)


class Result(Value, Generic[T_co], kw_only=True):
    """The messages that followed a prompt; `str(result)` is the text of the last answer."""

    messages: tuple[SessionMessage, ...]
    """Everything from the prompt on, in order."""
    output: T_co
    """The value that `output=` asked for; None if nothing did."""

    @property
    def text(self) -> str:
        """The text of the last step that says something."""
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage) and (said := _text(message)):
                return said
        return ""

    @property
    def usage(self) -> TokenUsage:
        """The tokens of all steps, as the provider counted them."""
        total = NO_TOKENS
        for step in self._steps:
            total = total if step.tokens is UNSET else total.plus(step.tokens)
        return total

    @property
    def cost(self) -> float:
        """In US dollars; 0 for a model without a known price."""
        return sum(step.cost for step in self._steps if step.cost is not UNSET)

    @property
    def failure(self) -> str | None:
        """Why the last step failed, in words."""
        steps = self._steps
        if not steps:
            return "The prompt is stored and has no answer: its run was interrupted or waits."
        return None if steps[-1].error is UNSET else steps[-1].error.message

    @property
    def _steps(self) -> list[AssistantMessage]:
        return [message for message in self.messages if isinstance(message, AssistantMessage)]

    def __str__(self) -> str:
        return self.text


def _text(step: AssistantMessage) -> str:
    return "".join(part.text for part in step.content if isinstance(part, TextPart))
