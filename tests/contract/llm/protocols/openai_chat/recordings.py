"""Streams as servers send them, and the bytes of one long answer that has everything in it."""

from collections.abc import Sequence

from perdure.llm.event import LLMEvent
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue


def chunk(delta: JsonObject | None = None, finish: str | None = None, **more: JsonValue) -> bytes:
    """One chunk as OpenAI writes it."""
    choice: JsonObject = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    body: JsonObject = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}
    return codec.encode(body | more)


def call(index: int | None = None, **fields: JsonValue) -> JsonObject:
    """A tool call delta; `name` and `arguments` go into its function."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    where: JsonObject = {} if index is None else {"index": index}
    return {"tool_calls": [where | fields | {"function": function}]}


def step_all(frames: Sequence[bytes]) -> list[LLMEvent]:
    state = OPENAI_CHAT.start()
    return [event for frame in frames for event in OPENAI_CHAT.step(state, frame)]


def body_of(frames: Sequence[bytes]) -> bytes:
    return b"".join(b"data: %b\n\n" % frame for frame in frames)


USAGE: JsonObject = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 20},
}

EVERYTHING: Sequence[bytes] = (
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "Let me "}),
    chunk({"reasoning_content": "see."}),
    chunk({"content": "Grüße 🌍, "}),
    chunk({"content": "now the files."}),
    chunk(call(0, id="call_a", type="function", name="read", arguments="")),
    chunk(call(0, arguments='{"path":')),
    chunk(call(1, id="call_b", type="function", name="glob", arguments='{"pattern":"*"}')),
    chunk(call(0, arguments='"ä.txt"}')),
    chunk({}, "tool_calls"),
    codec.encode({"choices": [], "usage": USAGE}),
    b"[DONE]",
)

# The pieces that OpenRouter streams for a signed and an encrypted thought.
DETAILED: Sequence[bytes] = (
    chunk(
        {
            "reasoning": "Let ",
            "reasoning_details": [{"type": "reasoning.text", "text": "Let ", "index": 0}],
        }
    ),
    chunk(
        {
            "reasoning": "me.",
            "reasoning_details": [{"type": "reasoning.text", "text": "me.", "index": 0}],
        }
    ),
    chunk(
        {
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "signature": "c2ln",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                }
            ]
        }
    ),
    chunk(call(0, id="call_a", type="function", name="read", arguments="{}")),
    chunk(
        {
            "reasoning_details": [
                {"type": "reasoning.encrypted", "data": "RW1", "id": "call_a", "index": 1}
            ]
        }
    ),
    chunk({}, "tool_calls"),
    codec.encode({"choices": [], "usage": USAGE}),
    b"[DONE]",
)

THINKING: Sequence[bytes] = (
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Ein "}]}]}),
    chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Gruß?"}]}]}),
    chunk({"content": [{"type": "thinking", "thinking": [], "closed": True}]}),
    chunk({"content": "Grüße"}),
    chunk({"content": [{"type": "text", "text": " 🌍"}]}),
    chunk({}, "stop", usage=USAGE),
    codec.encode({"choices": [], "usage": None}),
    b"[DONE]",
)
"""As Mistral's reasoning models send it (API reference, chat completion stream)."""

WITHOUT_REASON: Sequence[bytes] = (
    codec.encode({"choices": [{"delta": {"content": "I look.", "tool_calls": None}, "index": 0}]}),
    codec.encode(
        {
            "choices": [
                {"delta": call(0, id="tooluse_1", type="function", name="read", arguments="")}
            ]
        }
    ),
    codec.encode({"choices": [{"delta": call(0, arguments='{"path":')}]}),
    codec.encode({"choices": [{"delta": call(0, arguments='"ä.txt"}')}]}),
    codec.encode({"choices": [], "usage": USAGE}),
    b"[DONE]",
)
"""As Snowflake Cortex sends it: no finish reason, then the counts."""

RECORDINGS = {
    "everything": EVERYTHING,
    "reasoning details": DETAILED,
    "thinking": THINKING,
    "without a reason": WITHOUT_REASON,
}
