"""Every wire protocol as a provider would speak it: how it answers, and where its requests begin.

A new protocol adds one Dialect; the tests that hold for all of them then hold for it too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.anthropic_messages import recordings as anthropic
from tests.contract.llm.openai_responses import recordings as responses
from tests.support import scripted_provider as chat
from tests.support.scripted_provider import SECRET, Call, Reply, Request, ScriptedProvider

_HINT: Final = re.compile(rb',?"cache_control":\{[^}]*\}')
"""Where a cache is to be written moves along with the conversation and is not part of it."""


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    package: str
    says: Callable[[str], Reply]
    asks: Callable[[str, str, JsonObject], Reply]
    """A call: its id, its tool, its input."""
    fixed: tuple[str, ...]
    """The fields of a request that come before the conversation."""
    conversation: str

    def entry(self, server: ScriptedProvider) -> JsonObject:
        """What a user writes to reach it; its model has the name of the protocol."""
        return {
            "api": {"type": "aisdk", "package": self.package, "url": server.url},
            "request": {"body": {"apiKey": SECRET}},
            "models": {self.name: {"limit": {"context": 1_000_000, "output": 32_000}}},
        }

    @property
    def model(self) -> JsonObject:
        return {"id": self.name, "providerID": self.name}

    def begins(self, request: Request) -> list[bytes]:
        """The bytes that stand before the conversation."""
        fields = msgspec.json.decode(request.raw, type=dict[str, msgspec.Raw])
        return [_HINT.sub(b"", bytes(fields[name])) for name in self.fixed if name in fields]

    def items(self, request: Request) -> list[bytes]:
        """The bytes of the conversation, item by item."""
        fields = msgspec.json.decode(request.raw, type=dict[str, msgspec.Raw])
        items = msgspec.json.decode(fields[self.conversation], type=list[msgspec.Raw])
        return [_HINT.sub(b"", bytes(item)) for item in items]


def _chat_asks(id: str, tool: str, input: JsonObject) -> Reply:
    return chat.calls(Call(tool, input, id=id), saying="Let me look.")


def _anthropic_says(text: str) -> Reply:
    frames = [anthropic.begin(), *anthropic.thinking(0, "hm"), *anthropic.text(1, text)]
    return Reply(
        pieces=(anthropic.body_of([*frames, anthropic.reason("end_turn"), anthropic.STOP]),)
    )


def _anthropic_asks(id: str, tool: str, input: JsonObject) -> Reply:
    call = anthropic.call(1, id, tool, codec.encode(input).decode())
    frames = [anthropic.begin(), *anthropic.thinking(0, "hm"), *call]
    return Reply(
        pieces=(anthropic.body_of([*frames, anthropic.reason("tool_use"), anthropic.STOP]),)
    )


def _responses_says(text: str) -> Reply:
    frames = [*responses.reasoning(0, ["hm"]), *responses.message(1, text)]
    return Reply(pieces=(responses.body_of([responses.created(), *frames, responses.completed()]),))


def _responses_asks(id: str, tool: str, input: JsonObject) -> Reply:
    call = responses.call(1, tool, codec.encode(input).decode(), id=id)
    frames = [*responses.reasoning(0, ["hm"]), *call]
    return Reply(pieces=(responses.body_of([responses.created(), *frames, responses.completed()]),))


DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "openai-chat",
            "@ai-sdk/openai-compatible",
            chat.text,
            _chat_asks,
            ("tools",),
            "messages",
        ),
        Dialect(
            "anthropic-messages",
            "@ai-sdk/anthropic",
            _anthropic_says,
            _anthropic_asks,
            ("tools", "system"),
            "messages",
        ),
        Dialect(
            "openai-responses",
            "@ai-sdk/openai",
            _responses_says,
            _responses_asks,
            ("tools", "instructions"),
            "input",
        ),
    )
}
