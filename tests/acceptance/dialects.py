"""Every wire protocol as a provider would speak it: how it answers, and where its requests begin.

A new protocol adds one Dialect; the tests that hold for all of them then hold for it too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.anthropic_messages import recordings as anthropic
from tests.contract.llm.anthropic_messages import validator as anthropic_validator
from tests.contract.llm.bedrock_converse import recordings as bedrock
from tests.contract.llm.bedrock_converse import validator as bedrock_validator
from tests.contract.llm.gemini import recordings as gemini
from tests.contract.llm.gemini import validator as gemini_validator
from tests.contract.llm.openai_responses import recordings as responses
from tests.contract.llm.openai_responses import validator as responses_validator
from tests.support import scripted_provider as chat
from tests.support.scripted_provider import SECRET, Call, Reply, Request, ScriptedProvider

_HINT: Final = re.compile(rb',?"cache_control":\{[^}]*\}|,?\{"cachePoint":\{[^}]*\}\}')
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
    faults: Callable[[Request], list[str]]
    """What the provider would refuse in a request."""
    model_id: str
    access: JsonObject = field(default_factory=dict[str, object])
    """Settings of the api, where a key in the body is not the way."""

    def entry(self, server: ScriptedProvider) -> JsonObject:
        """What a user writes to reach it."""
        return {
            "api": {
                "type": "aisdk",
                "package": self.package,
                "url": server.url,
                "settings": self.access,
            },
            "request": {"body": {} if self.access else {"apiKey": SECRET}},
            "models": {self.model_id: {"limit": {"context": 1_000_000, "output": 32_000}}},
        }

    @property
    def model(self) -> JsonObject:
        return {"id": self.model_id, "providerID": self.name}

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


def _gemini_says(text: str) -> Reply:
    parts = (gemini.thought("hm"), gemini.said(text, thoughtSignature="c2ln"))
    frames = [gemini.chunk(parts[0]), gemini.chunk(parts[1], why="STOP")]
    return Reply(pieces=(gemini.body_of(frames),))


def _gemini_asks(id: str, tool: str, input: JsonObject) -> Reply:
    call = gemini.call(tool, input, id=id, signature="c2ln")
    return Reply(pieces=(gemini.body_of([gemini.chunk(call, why="STOP")]),))


def _bedrock_says(text: str) -> Reply:
    frames = [*bedrock.reasoning(0, "hm"), *bedrock.text(1, text)]
    return Reply(pieces=(bedrock.begin(), *frames, bedrock.reason("end_turn"), bedrock.counts()))


def _bedrock_asks(id: str, tool: str, input: JsonObject) -> Reply:
    frames = bedrock.call(0, id, tool, codec.encode(input).decode())
    return Reply(pieces=(bedrock.begin(), *frames, bedrock.reason("tool_use"), bedrock.counts()))


def _chat_faults(request: Request) -> list[str]:
    """Every result follows its call, and every call has one."""
    open_calls: list[str] = []
    found: list[str] = []
    for message in request.messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                found.append(f"a result without its call: {message}")
            else:
                open_calls.remove(message["tool_call_id"])
            continue
        found += [f"call {call} has no result" for call in open_calls]
        open_calls = [call["id"] for call in message.get("tool_calls", ())]
    return found + [f"call {call} has no result" for call in open_calls]


_BEDROCK_MODEL: Final = "anthropic.claude-opus-4-8-v1:0"

_ALL: Final = (
    Dialect(
        "openai-chat",
        "@ai-sdk/openai-compatible",
        chat.text,
        _chat_asks,
        ("tools",),
        "messages",
        _chat_faults,
        "chat-test",
    ),
    Dialect(
        "anthropic-messages",
        "@ai-sdk/anthropic",
        _anthropic_says,
        _anthropic_asks,
        ("tools", "system"),
        "messages",
        lambda request: anthropic_validator.faults(request.body, request.raw),
        "claude-test",
    ),
    Dialect(
        "openai-responses",
        "@ai-sdk/openai",
        _responses_says,
        _responses_asks,
        ("tools", "instructions"),
        "input",
        lambda request: responses_validator.faults(request.body),
        "gpt-5",
    ),
    Dialect(
        "gemini",
        "@ai-sdk/google",
        _gemini_says,
        _gemini_asks,
        ("tools", "systemInstruction"),
        "contents",
        lambda request: gemini_validator.faults(request.body, request.raw),
        "gemini-3-test",
    ),
    Dialect(
        "bedrock-converse",
        "@ai-sdk/amazon-bedrock",
        _bedrock_says,
        _bedrock_asks,
        ("toolConfig", "system"),
        "messages",
        lambda request: bedrock_validator.faults(request.body, request.raw, _BEDROCK_MODEL),
        _BEDROCK_MODEL,
        {"region": "eu-west-1", "accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET},
    ),
)
DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in _ALL}
