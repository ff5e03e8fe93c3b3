"""Bounds one answer of a model: its texts, its reasoning, the inputs of its calls, its parts.

A provider is not trusted to stop. What came before a limit is kept, up to the character; the step
then fails with the limit as its reason, and is not retried.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from perdure.core import limits
from perdure.llm import event as llm
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent
from perdure.schema import codec


class AnswerLimits:
    def __init__(self) -> None:
        self._texts = _Budget(limits.ANSWER_TEXT_CHARS_MAX, "characters of text")
        self._reasonings = _Budget(limits.ANSWER_REASONING_CHARS_MAX, "characters of reasoning")
        self._inputs = _Budget(limits.ANSWER_INPUT_CHARS_MAX, "characters of tool input")
        self._hosted = _Budget(
            limits.ANSWER_HOSTED_BYTES_MAX, "bytes of hosted results and metadata"
        )
        self._parts = _Budget(limits.ANSWER_PARTS_MAX, "parts")
        self._counted: dict[str, int] = {}
        """Characters of input that were counted, by call."""
        self._steps: dict[type[LLMEvent], Callable[[Any], LLMEvent]] = {
            llm.TextStart: self._text_start,
            llm.TextDelta: self._text_delta,
            llm.ReasoningStart: self._reasoning_start,
            llm.ReasoningDelta: self._reasoning_delta,
            llm.ReasoningEnd: self._reasoning_end,
            llm.ToolInputStart: self._input_start,
            llm.ToolInputDelta: self._input_delta,
            llm.ToolInputEnd: self._input_end,
            llm.ToolCall: self._tool_call,
            llm.HostedToolResult: self._hosted_result,
        }
        self._exceeded: LLMError | None = None

    def within(self, batch: Sequence[LLMEvent]) -> Iterator[LLMEvent]:
        """The events of a batch; a delta that exceeds a limit is cut. Raises LLMError after it."""
        for event in batch:
            step = self._steps.get(type(event))
            yield event if step is None else step(event)
            if self._exceeded is not None:
                raise self._exceeded

    def _text_start(self, event: llm.TextStart) -> LLMEvent:
        self._parts.require(1)
        return event

    def _text_delta(self, event: llm.TextDelta) -> LLMEvent:
        return self._cut(event, self._texts)

    def _reasoning_start(self, event: llm.ReasoningStart) -> LLMEvent:
        self._parts.require(1)
        self._count_hosted(event.metadata)
        return event

    def _reasoning_delta(self, event: llm.ReasoningDelta) -> LLMEvent:
        return self._cut(event, self._reasonings)

    def _reasoning_end(self, event: llm.ReasoningEnd) -> LLMEvent:
        self._count_hosted(event.metadata)
        return event

    def _input_start(self, event: llm.ToolInputStart) -> LLMEvent:
        self._parts.require(1)
        self._counted.setdefault(event.id, 0)
        return event

    def _input_delta(self, event: llm.ToolInputDelta) -> LLMEvent:
        self._counted[event.id] = self._counted.get(event.id, 0) + len(event.text)
        return self._cut(event, self._inputs)

    def _input_end(self, event: llm.ToolInputEnd) -> LLMEvent:
        self._count_input(event.id, len(event.text))
        return event

    def _tool_call(self, event: llm.ToolCall) -> LLMEvent:
        if event.id not in self._counted:
            self._parts.require(1)
            self._count_input(event.id, len(codec.encode(event.input)))
        self._count_hosted(event.metadata)
        return event

    def _hosted_result(self, event: llm.HostedToolResult) -> LLMEvent:
        self._count_hosted(event.result.value)
        self._count_hosted(event.metadata)
        return event

    def _count_input(self, call_id: str, size: int) -> None:
        """Count the whole input of a call, of which the deltas were counted."""
        more = size - self._counted.get(call_id, 0)
        if more > 0:
            self._counted[call_id] = size
            self._inputs.require(more)

    def _count_hosted(self, value: object) -> None:
        if value is not None:
            self._hosted.require(len(codec.encode(value)))

    def _cut(
        self, event: llm.TextDelta | llm.ReasoningDelta | llm.ToolInputDelta, budget: "_Budget"
    ) -> LLMEvent:
        room = budget.left
        budget.left -= len(event.text)
        if budget.left >= 0:
            return event
        self._exceeded = budget.failure()
        return replace(event, text=event.text[:room])


class _Budget:
    def __init__(self, most: int, what: str) -> None:
        self.left = most
        self._most = most
        self._what = what

    def require(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise self.failure()

    def failure(self) -> LLMError:
        return LLMError(
            "invalid-provider-output",
            f"The answer was stopped: it has more than {self._most:,} {self._what}, the most that"
            " one answer may have",
        )
