"""Histories drawn from a seed, many and cheap: the bulk of the proof that no history is refused.

Hypothesis draws fewer of them beside this and makes a failing one small. One seed is one request;
a failure names its seed.
"""

from collections.abc import Sequence
from random import Random
from typing import Final, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.core.request import history_to_llm
from perdure.llm.request import GenerationControls, LLMRequest, ToolChoice, ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.session import message as stored
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    Created,
    SessionMessage,
    Span,
)
from perdure.schema.session.prompt import FileAttachment
from perdure.schema.session.tool import (
    AttachedContent,
    CompletedState,
    ErrorState,
    FileContent,
    PartProvider,
    PendingState,
    ProviderMetadata,
    RunningState,
    TextContent,
    ToolContent,
    ToolState,
    error_info,
)
from tests.contract.llm.stored_histories import (
    ALL_CALL_IDS,
    AT,
    FOREIGN,
    HOSTED_TIMES,
    LARGE,
    LAST_STEP,
    MODEL,
    PDF,
    PNG,
    TAKES,
    TOOL_TIMES,
    Kept,
    sent,
)
from tests.fixtures import SESSION

T = TypeVar("T")

TEXTS: Final = (
    "",
    " ",
    "\n\t",
    "words",
    "<b> & ü 🌍 ",
    "\x00\x1b",
    '{"a":1}',
    "[",
    "</b>",
    "\u2028",
)
URIS: Final = (
    PNG,
    PDF,
    LARGE,
    "data:image/png;base64,AAAA",
    "data:image/png;base64,!",
    "data:image/gif;base64,R0lGODlh",
    "data:image/jpeg;base64,/9j/4AAQ",
    "data:application/pdf;base64,AAAA",
    "data:application/pdf;base64,!",
    "data:text/plain,%20",
    "data:,x",
    "https://h/i.png",
    "http://h/i.png",
    "file:///x",
    "",
)
MIMES: Final = ("image/png", "image/gif", "image/jpeg", "text/plain", "application/pdf", "", "x")
VALUES: Final[tuple[JsonValue, ...]] = (
    None,
    0,
    "",
    " ",
    "x",
    [],
    {},
    {"type": "x"},
    [{"type": "text", "text": " "}],
)
NAMES: Final = ("read", "functions.read", "", "x" * 90, "söme tool", "1st")
PENDING: Final = ('{"n":1}', '[{"n":1}]', "{", "")
CHOICES: Final[tuple[ToolChoice | None, ...]] = (None, "auto", "required", "none")
TOOLS: Final = (
    ToolDefinition("read", "", {"anyOf": [{"properties": {"a": {"type": ["string", "null"]}}}]}),
    ToolDefinition("glob", "Finds.", {}),
)
CONTROLS: Final = (
    GenerationControls(),
    GenerationControls(max_tokens=1500, temperature=1.0, top_k=3, seed=2**40),
)


def request(kept: Kept, seed: int) -> LLMRequest:
    return _Draw(kept, seed).request()


class _Draw:
    def __init__(self, kept: Kept, seed: int) -> None:
        self._kept = kept
        self._chance = Random(seed)
        self._places = 0

    def request(self) -> LLMRequest:
        history = [self._message() for _ in range(self._chance.randrange(7))]
        if self._kept.ends_with_prompt:
            history.append(self._prompt())
        lowered = [part for one in history for part in history_to_llm.lower(one, MODEL)]
        runs = sent(lowered, self._one(TAKES))
        if not self._kept.ends_with_prompt and self._chance.random() < 0.3:
            runs = (*runs, LAST_STEP)
        return LLMRequest(
            model=MODEL,
            system=tuple(self._text() for _ in range(self._chance.randrange(3))),
            segments=runs,
            tools=self._one(((), TOOLS)),
            tool_choice=self._one(CHOICES),
            generation=self._one(CONTROLS),
            options={self._kept.namespace: self._one(({}, *self._kept.options))},
        )

    def _message(self) -> SessionMessage:
        """A message, and now and then one that the user has excluded."""
        message = self._written()
        if isinstance(message, stored.SystemMessage) or self._chance.random() < 0.8:
            return message
        return replace(message, time=replace(message.time, excluded=2))

    def _written(self) -> SessionMessage:
        message_id = self._id()
        match self._chance.randrange(10):
            case 0 | 1 | 2:
                return self._prompt()
            case 3:
                return stored.SystemMessage(id=message_id, time=AT, text=self._text())
            case 4:
                return stored.SyntheticMessage(
                    id=message_id, time=AT, session_id=SESSION, text=self._text()
                )
            case 5:
                return self._rare(message_id)
            case _:
                return self._answer(message_id)

    def _rare(self, id: MessageID) -> SessionMessage:
        if self._chance.random() < 0.5:
            return stored.ModelSwitchedMessage(id=id, time=Created(created=1), model=MODEL)
        return stored.CompactionMessage(
            id=id, time=AT, reason="auto", summary=self._text(), recent=self._text()
        )

    def _prompt(self) -> stored.UserMessage:
        files = tuple(
            FileAttachment(uri=self._one(URIS), mime=self._one(MIMES), name="a\nb")
            for _ in range(self._chance.choice((0, 0, 1, 2, 7)))
        )
        attached = UNSET if self._chance.random() < 0.5 else self._attached()
        return stored.UserMessage(
            id=self._id(), time=AT, text=self._text(), files=files, attached=attached
        )

    def _attached(self) -> tuple[AttachedContent, ...]:
        """What was found of the files; a number may name a file that is not there."""
        return tuple(
            AttachedContent(content=self._content(), file=self._one((UNSET, 0, 1, 99)))
            for _ in range(self._chance.randrange(4))
        )

    def _answer(self, id: MessageID) -> AssistantMessage:
        content: list[AssistantPart] = []
        # A call's id is unique inside its message; the record of a turn sees to it.
        ids: set[str] = set()
        for _ in range(self._chance.randrange(6)):
            part = self._part()
            if isinstance(part, stored.ToolPart):
                if part.id in ids:
                    continue
                ids.add(part.id)
            content.append(part)
        return AssistantMessage(
            id=id,
            time=Span(created=1),
            agent="build",
            model=self._one((MODEL, MODEL, FOREIGN)),
            content=tuple(content),
            error=self._one((UNSET, UNSET, error_info("lost"))),
        )

    def _part(self) -> AssistantPart:
        self._places += 1
        match self._chance.randrange(5):
            case 0:
                return stored.TextPart(id="t", text=self._text())
            case 1:
                metadata = self._native((*self._kept.reasoning, {"elsewhere": {"itemId": "rs_1"}}))
                return stored.ReasoningPart(id="r", text=self._text(), provider_metadata=metadata)
            case 2:
                return self._hosted()
            case _:
                return self._call()

    def _call(self) -> stored.ToolPart:
        provider = PartProvider(executed=False, metadata=self._native(self._kept.calls))
        return stored.ToolPart(
            id=ToolCallID(self._one(ALL_CALL_IDS)),
            name=self._one(NAMES),
            state=self._state(),
            time=self._one(TOOL_TIMES),
            provider=self._one((UNSET, provider)),
        )

    def _hosted(self) -> stored.ToolPart:
        found = self._placed({"type": "json", "value": self._one((*self._kept.hosted_values, []))})
        done = CompletedState(
            input={"query": "x"}, content=(), output_paths=(), structured={}, result=found
        )
        return stored.ToolPart(
            id=ToolCallID(self._one(self._kept.hosted_ids)),
            name="web_search",
            state=done if self._chance.random() < 0.6 else self._state(),
            time=self._one(HOSTED_TIMES),
            provider=PartProvider(
                executed=True,
                metadata=self._native(self._kept.hosted_calls),
                result_metadata=self._native(self._kept.hosted_results),
            ),
        )

    def _state(self) -> ToolState:
        asked: JsonObject = {"n": self._chance.getrandbits(62)}
        structured: JsonObject = {"a": self._one(VALUES)}
        match self._chance.randrange(6):
            case 0:
                return PendingState(input=self._one(PENDING))
            case 1:
                return RunningState(input=asked, structured=structured, content=())
            case 2:
                why = error_info(self._text())
                return ErrorState(input=asked, content=(), structured=structured, error=why)
            case 3:
                return CompletedState(
                    input=asked,
                    content=(),
                    output_paths=(),
                    structured=structured,
                    result=self._one(VALUES),
                )
            case _:
                return CompletedState(
                    input=asked, content=self._content(), output_paths=(), structured=structured
                )

    def _content(self) -> tuple[ToolContent, ...]:
        return tuple(
            TextContent(self._text())
            if self._chance.random() < 0.5
            else FileContent(uri=self._one(URIS), mime=self._one(MIMES))
            for _ in range(self._chance.randrange(4))
        )

    def _native(self, kinds: Sequence[ProviderMetadata]) -> ProviderMetadata | UnsetType:
        chosen = self._one((UNSET, *kinds))
        return UNSET if chosen is UNSET else self._placed(chosen)

    def _placed(self, value: JsonObject) -> JsonObject:
        """With names of its own, where a provider knows one only once."""
        raw = codec.encode(value)
        return codec.decode_any(raw.replace(b"@", b"%d" % self._places)) if b"@" in raw else value

    def _text(self) -> str:
        if self._chance.random() < 0.7:
            return self._one(TEXTS)
        return "".join(
            map(chr, self._chance.choices(range(1, 0xD7FF), k=self._chance.randrange(9)))
        )

    def _one(self, kinds: Sequence[T]) -> T:
        return kinds[int(self._chance.random() * len(kinds))]

    def _id(self) -> MessageID:
        self._places += 1
        return MessageID(f"msg_{self._places}")
