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
from tests.contract.llm.protocols.anthropic import recordings as anthropic
from tests.contract.llm.protocols.anthropic import validator as anthropic_validator
from tests.contract.llm.protocols.bedrock import recordings as bedrock
from tests.contract.llm.protocols.bedrock import validator as bedrock_validator
from tests.contract.llm.protocols.gemini import recordings as gemini
from tests.contract.llm.protocols.gemini import validator as gemini_validator
from tests.contract.llm.protocols.openai_chat import recordings as openai_chat
from tests.contract.llm.protocols.openai_responses import recordings as responses
from tests.contract.llm.protocols.openai_responses import validator as responses_validator
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
    """It thinks `hm`, and makes a call: its id, its tool, its input."""
    fixed: tuple[str, ...]
    """The fields of a request that come before the conversation."""
    conversation: str
    faults: Callable[[Request], list[str]]
    """What the provider would refuse in a request."""
    model_id: str
    fails: Callable[[str], Reply]
    """It thinks, says half of something, and then that it cannot go on."""
    refuses: Callable[[str], JsonObject]
    """The body of a refusal that says this."""
    seal: str | None
    """What proves that its reasoning is its own, where it wants a proof."""
    access: JsonObject = field(default_factory=dict[str, object])
    """Settings of the api, where a key in the body is not the way."""

    def entry(self, server: ScriptedProvider) -> JsonObject:
        """What a user writes to reach it."""
        return configured(self.package, server, self.model_id, self.access)

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


def configured(
    package: str, server: ScriptedProvider, model: str, access: JsonObject | None = None
) -> JsonObject:
    """A provider as a user writes it down: with a key, or with other settings instead."""
    return {
        "api": {"type": "aisdk", "package": package, "url": server.url, "settings": access or {}},
        "request": {"body": {} if access else {"apiKey": SECRET}},
        "models": {model: {"limit": {"context": 1_000_000, "output": 32_000}}},
    }


def _chat_asks(id: str, tool: str, input: JsonObject) -> Reply:
    begun = chat.text("Let me look.", reasoning=["hm"]).pieces[:2]
    return Reply(pieces=(*begun, *chat.calls(Call(tool, input, id=id)).pieces))


def _chat_fails(message: str) -> Reply:
    begun = chat.text("half", reasoning=["hm"]).pieces[:2]
    return Reply(pieces=(*begun, openai_chat.body_of([codec.encode(_chat_refuses(message))])))


def _chat_refuses(message: str) -> JsonObject:
    return {"error": {"type": "invalid_request_error", "message": message}}


def _anthropic(*blocks: bytes, why: str) -> Reply:
    frames = [anthropic.begin(), *anthropic.thinking(0, "hm"), *blocks]
    return Reply(pieces=(anthropic.body_of([*frames, anthropic.reason(why), anthropic.STOP]),))


def _anthropic_says(text: str) -> Reply:
    return _anthropic(*anthropic.text(1, text), why="end_turn")


def _anthropic_asks(id: str, tool: str, input: JsonObject) -> Reply:
    return _anthropic(*anthropic.call(1, id, tool, codec.encode(input).decode()), why="tool_use")


def _anthropic_fails(message: str) -> Reply:
    frames = [anthropic.begin(), *anthropic.thinking(0, "hm"), *anthropic.text(1, "half")]
    failed = anthropic.error("invalid_request_error", message)
    return Reply(pieces=(anthropic.body_of([*frames, failed]),))


def _anthropic_refuses(message: str) -> JsonObject:
    return codec.decode_any(anthropic.error("invalid_request_error", message))


def _responses(*items: bytes, end: bytes) -> Reply:
    frames = [responses.created(), *responses.reasoning(0, ["hm"]), *items, end]
    return Reply(pieces=(responses.body_of(frames),))


def _responses_says(text: str) -> Reply:
    return _responses(*responses.message(1, text), end=responses.completed())


def _responses_asks(id: str, tool: str, input: JsonObject) -> Reply:
    call = responses.call(1, tool, codec.encode(input).decode(), id=id, call_id=id)
    return _responses(*call, end=responses.completed())


def _responses_fails(message: str) -> Reply:
    failed = responses.event("error", code="invalid_prompt", message=message)
    return _responses(*responses.message(1, "half"), end=failed)


def _responses_refuses(message: str) -> JsonObject:
    return {"error": {"type": "invalid_request_error", "message": message}}


def _gemini(*frames: bytes) -> Reply:
    thought = gemini.chunk(gemini.thought("hm", thoughtSignature="dGg="))
    return Reply(pieces=(gemini.body_of([thought, *frames]),))


def _gemini_says(text: str) -> Reply:
    return _gemini(gemini.chunk(gemini.said(text, thoughtSignature="c2ln"), why="STOP"))


def _gemini_asks(id: str, tool: str, input: JsonObject) -> Reply:
    return _gemini(gemini.chunk(gemini.call(tool, input, id=id, signature="c2ln"), why="STOP"))


def _gemini_fails(message: str) -> Reply:
    failed = gemini.error(400, "INVALID_ARGUMENT", message)
    return _gemini(gemini.chunk(gemini.said("half")), failed)


def _gemini_refuses(message: str) -> JsonObject:
    return codec.decode_any(gemini.error(400, "INVALID_ARGUMENT", message))


def _bedrock(*frames: bytes) -> Reply:
    return Reply(pieces=(bedrock.begin(), *bedrock.reasoning(0, "hm"), *frames))


def _bedrock_says(text: str) -> Reply:
    return _bedrock(*bedrock.text(1, text), bedrock.reason("end_turn"), bedrock.counts())


def _bedrock_asks(id: str, tool: str, input: JsonObject) -> Reply:
    call = bedrock.call(1, id, tool, codec.encode(input).decode())
    return _bedrock(*call, bedrock.reason("tool_use"), bedrock.counts())


def _bedrock_fails(message: str) -> Reply:
    return _bedrock(*bedrock.text(1, "half"), bedrock.exception("validationException", message))


def _bedrock_refuses(message: str) -> JsonObject:
    return {"message": message}


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
        _chat_fails,
        _chat_refuses,
        None,
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
        _anthropic_fails,
        _anthropic_refuses,
        "c2ln",
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
        _responses_fails,
        _responses_refuses,
        "sealed",
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
        _gemini_fails,
        _gemini_refuses,
        "dGg=",
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
        _bedrock_fails,
        _bedrock_refuses,
        "c2ln",
        {"region": "eu-west-1", "accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET},
    ),
)
DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in _ALL}
