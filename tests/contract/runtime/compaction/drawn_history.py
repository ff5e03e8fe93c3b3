"""Histories drawn from a seed: texts, tools, images, hosted results, and single huge messages.

Written as the events that a log would have, so that the runtime finds them as its own.
"""

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Final

from msgspec import UNSET

from perdure.schema.codec import JsonValue
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.models.model import NO_TOKENS, ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from perdure.schema.session.prompt import FileAttachment, Prompt
from perdure.schema.session.tool import CallProvider, FileContent, TextContent, ToolContent
from tests.support.inputs.images import inlined, picture

_WORDS: Final = ("lorem", "ipsum", "dolor", "\u00fcber", "if (x) {", "\n", "0x1f", "\u4e2d\u6587")
_PARALLEL_MAX: Final = 5


@cache
def image() -> str:
    return inlined(picture())


class DrawnHistory:
    """The events of one Session. Sizes are in tokens, about."""

    def __init__(self, session_id: SessionID, model: ModelRef, chance: Random) -> None:
        self._session_id = session_id
        self._model = model
        self._chance = chance
        self._numbers = 0
        self._piece = " ".join(chance.choices(_WORDS, k=400))

    def events(self, *, total: int, largest: int) -> Iterator[SessionEvent]:
        """Messages of `total` together, each with up to `largest`; often most of it is read."""
        reads = self._chance.random() < 0.5
        kinds: tuple[Callable[[int], list[SessionEvent]], ...] = (
            self._prompt, self._answer, self._calls, self._calls, self._images, self._hosted,
            self._shell,
        )  # fmt: skip
        while total > 0:
            # Of every size, more often a small one.
            size = 1 + int(largest * self._chance.random() ** 3)
            total -= size
            if reads:
                yield from self._chance.choice((self._prompt, self._answer))(size // 40)
                yield from self._calls(size)
            else:
                yield from self._chance.choice(kinds)(size)
        yield from self._answer(5)

    def text(self, tokens: int) -> str:
        times = 4 * tokens // len(self._piece) + 1
        return (self._piece * times)[: 4 * tokens]

    def _prompt(self, size: int, files: tuple[FileAttachment, ...] = ()) -> list[SessionEvent]:
        prompt = Prompt(text=self.text(size), files=files)
        return [
            events.PromptPromoted(
                *self._stamp(), message_id=self._id(), prompt=prompt, delivery="steer"
            )
        ]

    def _images(self, size: int) -> list[SessionEvent]:
        count = 1 + size // 1_600
        files = (FileAttachment(uri=image(), mime="image/png", name="a.png"),) * min(count, 60)
        return self._prompt(20, files)

    def _shell(self, size: int) -> list[SessionEvent]:
        call_id = ToolCallID(f"shell_{self._numbers}")
        return [
            events.ShellStarted(
                *self._stamp(), message_id=self._id(), call_id=call_id, command="ls"
            ),
            events.ShellEnded(*self._stamp(), call_id=call_id, output=self.text(size)),
        ]

    def _answer(self, size: int) -> list[SessionEvent]:
        step = self._id()
        texts: list[SessionEvent] = [
            events.TextStarted(*self._stamp(), assistant_message_id=step, text_id="t"),
            events.TextEnded(
                *self._stamp(), assistant_message_id=step, text_id="t", text=self.text(size)
            ),
        ]
        return self._step(step, texts)

    def _calls(self, size: int) -> list[SessionEvent]:
        step = self._id()
        count = self._chance.randint(1, _PARALLEL_MAX)
        facts: list[SessionEvent] = []
        for number in range(count):
            content: list[ToolContent] = [TextContent(text=self.text(size // count))]
            if self._chance.random() < 0.1:
                content.append(FileContent(uri=image(), mime="image/png"))
            facts += self._call(step, f"call_{number}", tuple(content))
        return self._step(step, facts)

    def _hosted(self, size: int) -> list[SessionEvent]:
        step = self._id()
        return self._step(step, self._call(step, "hosted_1", (), {"found": self.text(size)}))

    def _call(
        self, step: MessageID, name: str, content: tuple[ToolContent, ...], hosted: JsonValue = None
    ) -> list[SessionEvent]:
        call_id, provider = ToolCallID(name), CallProvider(executed=hosted is not None)
        tool = "read" if hosted is None else "web_search"
        settled = events.ToolSucceeded(
            *self._stamp(),
            assistant_message_id=step,
            call_id=call_id,
            structured={},
            content=content,
            provider=provider,
            result=UNSET if hosted is None else hosted,
        )
        return [
            events.ToolInputStarted(
                *self._stamp(), assistant_message_id=step, call_id=call_id, name=tool
            ),
            events.ToolCalled(
                *self._stamp(),
                assistant_message_id=step,
                call_id=call_id,
                tool=tool,
                input={"path": "a"},
                provider=provider,
            ),
            settled,
        ]

    def _step(self, step: MessageID, facts: list[SessionEvent]) -> list[SessionEvent]:
        started = events.StepStarted(
            *self._stamp(), assistant_message_id=step, agent="build", model=self._model
        )
        ended = events.StepEnded(
            *self._stamp(), assistant_message_id=step, finish="stop", cost=0.0, tokens=NO_TOKENS
        )
        return [started, *facts, ended]

    def _stamp(self) -> tuple[int, SessionID]:
        return 1_000, self._session_id

    def _id(self) -> MessageID:
        self._numbers += 1
        return MessageID(f"msg_{self._numbers:05d}")
