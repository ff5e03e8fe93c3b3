"""How servers of OpenAI Chat say what every provider says, and what only they say."""

from perdure.llm.event import Finish, ToolCall, Usage
from perdure.llm.protocols.openai_chat.request import OPENAI_CHAT
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.protocols.openai_chat import recordings as wire
from tests.contract.llm.wire import Wire, asked, spoken, thought

DONE = b"[DONE]"
TOKENS = Usage(input=70, output=30, reasoning=20, cache_read=30)


def text(_: int, *deltas: str) -> list[bytes]:
    return [wire.chunk({"content": delta}) for delta in deltas]


def call(index: int, id: str | None, name: str, *pieces: str) -> list[bytes]:
    begun = wire.call(index, id=id, type="function", name=name, arguments="")
    rest = [wire.call(index, arguments=piece) for piece in pieces]
    return [wire.chunk(delta) for delta in (begun, *rest)]


def stop(why: str) -> list[bytes]:
    counted = codec.encode({"choices": [], "usage": wire.USAGE})
    return [wire.chunk({}, why), counted, DONE]


def ended(usage: JsonObject | None) -> list[bytes]:
    return [wire.chunk({}, "stop", usage=usage), DONE]


def _counted_in_choice(usage: JsonObject) -> bytes:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}
    return codec.encode({"choices": [choice]})


def refused(message: str) -> JsonObject:
    return {"error": {"message": message}}


WIRE = Wire(
    offsets="byte offsets, OpenAI Chat",
    protocol=OPENAI_CHAT,
    body_of=wire.body_of,
    text=text,
    half=text(0, "half"),
    call=call,
    stop=stop,
    stops={
        "stop": "stop",
        "length": "length",
        "content_filter": "content-filter",
        "tool_calls": "stop",
        "function_call": "stop",
        "model_length": "length",
        "model_context_window_exceeded": "length",
        "sensitive": "content-filter",
        "abort": "error",
        "insufficient_system_resource": "error",
        "network_error": "error",
        "something_new": "unknown",
    },
    for_calls="tool_calls",
    counted=TOKENS,
    counted_at_reason=None,
    everything=wire.EVERYTHING,
    recordings=wire.RECORDINGS,
    ends={"without a reason": 2},
    everything_is=[
        *thought("reasoning-0", "Let me ", "see."),
        *spoken("text-0", "Grüße 🌍, ", "now the files."),
        # The pieces of two calls alternate; each call ends when the answer does.
        *asked("call_a", "read", '{"path":')[:-1],
        *asked("call_b", "glob", '{"pattern":"*"}')[:-1],
        *asked("call_a", "read", '{"path":', '"ä.txt"}')[-2:],
        ToolCall("call_a", "read", {"path": "ä.txt"}),
        *asked("call_b", "glob", '{"pattern":"*"}')[-1:],
        ToolCall("call_b", "glob", {"pattern": "*"}),
        Finish("tool-calls", TOKENS),
    ],
    cut_call=(wire.chunk(wire.call(0, id="a", name="bash")), *stop("length")),
    error=lambda message: codec.encode(refused(message)),
    errors=[
        (b'{"error":{"message":"Overloaded","code":503}}', "Overloaded", "overload"),
        (b'{"error":"bad things"}', "bad things", "unknown"),
        (
            b'{"error":{"message":"too long","code":"context_length_exceeded"}}',
            "too long",
            "overflow",
        ),
        (b'{"object":"error","message":"rate limit"}', "rate limit", "rate-limit"),
        (
            wire.chunk({}, "error", error={"code": 502, "message": "Upstream gone"}),
            "Upstream gone",
            "provider-internal",
        ),
        (
            codec.encode(
                {"choices": [{"finish_reason": "error", "error": {"code": 429, "message": "Slow"}}]}
            ),
            "Slow",
            "rate-limit",
        ),
        (
            codec.encode(
                {
                    "error": {
                        "code": 400,
                        "message": "Provider returned error",
                        "metadata": {"raw": '{"error":{"message":"prompt is too long"}}'},
                    }
                }
            ),
            "Provider returned error: prompt is too long",
            "overflow",
        ),
    ],
    refusals=[
        (503, refused("Overloaded"), "overload"),
        (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}, "overflow"),
        (401, refused("no such key"), "authentication"),
        (404, refused("no such model"), "invalid-request"),
    ],
    counts=[
        (ended(wire.USAGE), TOKENS),
        (ended(None), None),
        (ended({}), None),
        (ended({"prompt_tokens": "many"}), None),
        (ended({"prompt_tokens": 5, "completion_tokens": 3}), Usage(input=5, output=3)),
        (
            ended({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}),
            Usage(input=0, cache_read=5),
        ),
        (ended({"prompt_tokens": -4, "completion_tokens": 2}), Usage(output=2)),
        (
            ended({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}),
            Usage(input=5, output=1, cache_read=4),
        ),
        # Groq counts in a field of its own, Moonshot in the choice.
        ([wire.chunk({}, "stop", x_groq={"id": "r", "usage": wire.USAGE}), DONE], TOKENS),
        ([wire.chunk({}, "stop", usage=None, x_groq={"id": "r"}), DONE], None),
        ([_counted_in_choice(wire.USAGE), DONE], TOKENS),
        # Some servers count nothing once more, at the end.
        (
            [
                wire.chunk({}, "stop", usage=wire.USAGE),
                wire.chunk({}, usage={"prompt_tokens": 0, "completion_tokens": 0}),
                DONE,
            ],
            TOKENS,
        ),
    ],
    silent=[
        wire.chunk({"function_call": {"name": "x", "arguments": "{}"}}),
        wire.chunk({"audio": {"a": [1]}}, None, new=True),
        wire.chunk({}, error=None),
        b"{}",
    ],
    junk=[b'{"choices": 5}', b'{"choices":[{"delta":{"content":"\xc3\x28"}}]}'],
)
