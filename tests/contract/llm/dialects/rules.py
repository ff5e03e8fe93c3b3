"""What each Chat Completions provider accepts, from its documentation and its refusals.

Not made from our table (core.models.chat_dialects) or from the encoder: where both say the same,
they say it for the same reason.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from perdure.schema.codec import JsonObject
from tests.contract.llm.protocols.openai_chat import validator

_COMMON: Final = frozenset(
    {
        "frequency_penalty",
        "messages",
        "model",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "stop",
        "stream",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
    }
)
_ANSWER: Final = frozenset({"role", "content", "tool_calls"})
_ID: Final = re.compile(r"\S{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    fields: frozenset[str]
    """Every field of its request schema that this program could send."""
    answer: frozenset[str] = _ANSWER
    """The fields of an answer that goes back."""
    brings_back: Callable[[JsonObject, str], bool]
    """Whether an answer has that reasoning of its own in it, where the provider wants it."""
    always: frozenset[str] = frozenset()
    """Fields that each answer must have."""
    parts: frozenset[str] = frozenset({"text", "image_url"})
    call_id: re.Pattern[str] = _ID

    def faults(self, body: JsonObject, thoughts: Mapping[str, str]) -> list[str]:
        """All that it would refuse. `thoughts`: an answer's text -> its own reasoning."""
        return [
            *validator.faults(_plain(body)),
            *(f"field {name}" for name in body.keys() - self.fields),
            *self._answers(body["messages"], thoughts),
            *self._calls(body["messages"]),
            *self._parts(body["messages"]),
        ]

    def _answers(self, messages: list[JsonObject], thoughts: Mapping[str, str]) -> Iterator[str]:
        for message in messages:
            if message["role"] != "assistant":
                continue
            yield from (f"{name} in an answer" for name in message.keys() - self.answer)
            yield from (f"an answer without {name}" for name in self.always - message.keys())
            for text, thought in thoughts.items():
                if text in str(message["content"]) and not self.brings_back(message, thought):
                    yield f"the reasoning of {text!r} is lost"

    def _calls(self, messages: list[JsonObject]) -> Iterator[str]:
        ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        if len(ids) != len({*ids}):
            yield f"call ids that occur twice: {ids}"
        yield from (f"call id {one}" for one in ids if not self.call_id.fullmatch(one))

    def _parts(self, messages: list[JsonObject]) -> Iterator[str]:
        for message in (each for each in messages if each["role"] != "assistant"):
            kinds = {str(part["type"]) for part in _parts(message)}
            yield from (f"part {kind}" for kind in kinds - self.parts)


def _plain(body: JsonObject) -> JsonObject:
    """The body with contents that are one text or more as texts, for the rules of all providers."""

    def plain(message: JsonObject) -> JsonObject:
        parts = _parts(message)
        if parts and all(part["type"] == "text" for part in parts):
            return message | {"content": "".join(str(part["text"]) for part in parts)}
        return message

    return body | {"messages": [plain(message) for message in body["messages"]]}


def _parts(message: JsonObject) -> list[JsonObject]:
    """The parts of a content; none if it is one text."""
    match message["content"]:
        case [*parts]:
            return parts
        case _:
            return []


def _in_field(name: str) -> Callable[[JsonObject, str], bool]:
    return lambda message, thought: thought in str(message.get(name))


def _in_content(kind: str) -> Callable[[JsonObject, str], bool]:
    def found(message: JsonObject, thought: str) -> bool:
        return thought in str(message["content"]) and kind in str(message["content"])

    return found


_USAGE: Final = frozenset({"stream_options"})
_LIMIT: Final = frozenset({"max_tokens"})
RULES: Final[Mapping[str, Rules]] = {
    # API reference "Create a chat completion"; guides "Reasoning tokens", "PDF inputs".
    "openrouter": Rules(
        fields=_COMMON | _USAGE | _LIMIT | {"top_k", "seed", "reasoning", "provider", "user"},
        answer=_ANSWER | {"reasoning", "reasoning_details"},
        brings_back=_in_field("reasoning_details"),
        parts=frozenset({"text", "image_url", "file"}),
    ),
    # API reference "Chat"; "OpenAI compatibility". Fields of reasoning are refused in answers.
    "groq": Rules(
        fields=_COMMON | _USAGE | _LIMIT | {"max_completion_tokens", "seed", "user"},
        brings_back=_in_content("<think>"),
    ),
    # API reference "Chat completion"; "Reasoning". The request schema is closed.
    "mistral": Rules(
        fields=_COMMON | _LIMIT | {"random_seed", "safe_prompt", "prompt_mode"},
        answer=_ANSWER | {"prefix"},
        brings_back=_in_content("'type': 'thinking'"),
        call_id=re.compile(r"[a-zA-Z0-9]{9}"),
    ),
    # API reference "Create chat completion"; guide "Thinking mode".
    "deepseek": Rules(
        fields=_COMMON | _USAGE | _LIMIT | {"thinking", "logprobs", "top_logprobs"},
        answer=_ANSWER | {"reasoning_content", "prefix"},
        brings_back=_in_field("reasoning_content"),
        always=frozenset({"reasoning_content"}),
    ),
    # API reference "Chat completions"; guide "Reasoning": no penalties and no stop with Grok 4.
    "xai": Rules(
        fields=(_COMMON | _USAGE | _LIMIT | {"seed", "user"})
        - {"frequency_penalty", "presence_penalty", "stop"},
        answer=_ANSWER | {"reasoning_content"},
        brings_back=_in_field("reasoning_content"),
    ),
    # API reference "Chat completion"; guide "Thinking mode", preserved thinking.
    "zai": Rules(
        fields=_COMMON | _USAGE | _LIMIT | {"thinking", "tool_stream", "do_sample"},
        answer=_ANSWER | {"reasoning_content"},
        brings_back=_in_field("reasoning_content"),
        always=frozenset({"reasoning_content"}),
    ),
    # API reference "Chat completions"; "Reasoning"; "OpenAI compatibility".
    "cerebras": Rules(
        fields=(_COMMON | _USAGE | {"max_completion_tokens", "seed", "user"})
        - {"frequency_penalty", "presence_penalty"},
        answer=_ANSWER | {"reasoning"},
        brings_back=_in_field("reasoning"),
    ),
    # "OpenAI compatibility"; "Thinking".
    "ollama": Rules(
        fields=_COMMON | _USAGE | _LIMIT | {"seed"},
        answer=_ANSWER | {"reasoning"},
        brings_back=_in_field("reasoning"),
    ),
    # Its refusals: prompt_cache_key is an unsupported parameter.
    "nvidia": Rules(
        fields=_COMMON | _USAGE | _LIMIT | {"seed"},
        answer=_ANSWER | {"reasoning_content"},
        brings_back=_in_field("reasoning_content"),
    ),
}
