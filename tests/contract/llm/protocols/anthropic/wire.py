"""How Anthropic says what every provider says, and what only Anthropic says."""

from collections.abc import Sequence

from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.error import Reason
from perdure.llm.event import Finish, ToolCall, Usage
from perdure.llm.protocols.anthropic.request import ANTHROPIC_MESSAGES
from perdure.llm.route import Credential
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.protocols.anthropic import recordings as wire
from tests.contract.llm.wire import SECRET, Wire, asked, spoken, thought

READ, GLOB = "toolu_01AAAAAAAAAAAAAAAAAAAA", "toolu_01BBBBBBBBBBBBBBBBBBBB"
REDACTED = {"anthropic": {"redactedData": "RW1JdA=="}}


def ended(first: JsonObject, last: JsonObject) -> list[bytes]:
    """An answer without words that counts at its beginning and at its end."""
    return [wire.begin(**first), wire.reason("end_turn", **last), wire.STOP]


def refused(type: str, message: str) -> JsonObject:
    return {"type": "error", "error": {"type": type, "message": message}}


_RESULT = wire.opened(1, "web_fetch_tool_result", tool_use_id="srvtoolu_1", content={"a": 1})
_STRANGER = wire.opened(1, "web_fetch_tool_result", tool_use_id="srvtoolu_2", content={"a": 1})
_ERRORS: Sequence[tuple[str, str, Reason]] = (
    ("overloaded_error", "Overloaded", "overload"),
    ("api_error", "Something went wrong", "provider-internal"),
    ("rate_limit_error", "Slow down", "rate-limit"),
    ("timeout_error", "Request timeout", "provider-internal"),
    ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "overflow"),
    ("request_too_large", "Request exceeds the maximum size", "overflow"),
    ("authentication_error", "invalid x-api-key", "authentication"),
    ("permission_error", "no", "authentication"),
    ("billing_error", "Your credit balance is too low", "quota-exceeded"),
    ("not_found_error", "model: x", "invalid-request"),
)
_SILENT: list[JsonObject] = [
    {"type": "new_event", "index": 3, "stuff": {"a": [1]}},
    {"type": "ping", "error": None},
    {},
    {"type": "message_start"},
    {"type": "message_delta"},
    {"type": "content_block_stop", "index": 9},
]

WIRE = Wire(
    offsets="byte offsets, Anthropic",
    protocol=ANTHROPIC_MESSAGES,
    credential=Credential(SECRET, "x-api-key"),
    facts=ModelFacts(name="wire-model", output_limit=77),
    body_of=wire.body_of,
    begin=(wire.begin(),),
    text=wire.text,
    half=wire.text(0, "half")[:-1],
    call=wire.call,
    stop=lambda why: [wire.reason(why), wire.STOP],
    stops={
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "content-filter",
        "something_new": "unknown",
    },
    for_calls="tool_use",
    counted=Usage(input=25, output=15),
    counted_at_reason=Usage(input=25, output=15),
    everything=wire.EVERYTHING,
    recordings=wire.RECORDINGS,
    calls_early=True,
    everything_is=[
        *thought("reasoning-0", "Let me ", "see.", kept={"anthropic": {"signature": "RXJvQg=="}}),
        *thought("reasoning-1", known=REDACTED, kept=REDACTED),
        *spoken("text-0", "Grüße 🌍, ", "now the files."),
        *asked(READ, "read", '{"path":', '"ä.txt"}'),
        ToolCall(READ, "read", {"path": "ä.txt"}),
        *asked(GLOB, "glob", '{"pattern":"*"}'),
        ToolCall(GLOB, "glob", {"pattern": "*"}),
        Finish(
            "tool-calls", Usage(input=70, output=30, reasoning=20, cache_read=30, cache_write=8)
        ),
    ],
    cut_call=(
        wire.begin(),
        *wire.call(0, "a", "bash"),
        wire.reason("max_tokens"),
        wire.STOP,
    ),
    error=lambda message: wire.error("api_error", message),
    errors=[
        *((wire.error(kind, said), f"{kind}: {said}", reason) for kind, said, reason in _ERRORS),
        (b'{"error":"bad things"}', "bad things", "unknown"),
        (b'{"type":"error"}', '{"type":"error"}', "unknown"),
        (b'{"type":"error","error":{"message":"x"}}', "x", "unknown"),
    ],
    refusals=[
        (529, refused("overloaded_error", "Overloaded"), "overload"),
        (400, refused("invalid_request_error", "prompt is too long: 9 > 8"), "overflow"),
        (413, refused("request_too_large", "Request exceeds the maximum size"), "overflow"),
        (401, refused("authentication_error", "invalid x-api-key"), "authentication"),
        (400, refused("invalid_request_error", "Your credit balance is low"), "quota-exceeded"),
        (404, refused("not_found_error", "model: x"), "invalid-request"),
    ],
    counts=[
        (ended({}, {}), Usage(input=25, output=15)),
        # Later counts replace earlier ones.
        (ended({"input_tokens": 0}, {"input_tokens": 9}), Usage(input=9, output=15)),
        (ended({"input_tokens": 7}, {"input_tokens": None}), Usage(input=7, output=15)),
        (ended({"input_tokens": "many"}, {}), Usage(output=15)),
        (ended({"input_tokens": -4}, {}), Usage(output=15)),
        (
            ended(
                {"cache_read_input_tokens": 3},
                {"cache_read_input_tokens": 5, "cache_creation_input_tokens": 2},
            ),
            Usage(input=25, output=15, cache_read=5, cache_write=2),
        ),
        (
            ended({"input_tokens": 7}, {"input_tokens": 0, "cache_read_input_tokens": 0}),
            Usage(input=7, output=15),
        ),
        (
            ended(
                {
                    "cache_creation_input_tokens": 9,
                    "cache_creation": {
                        "ephemeral_5m_input_tokens": 5,
                        "ephemeral_1h_input_tokens": 4,
                    },
                },
                {},
            ),
            Usage(input=25, output=15, cache_write=9, cache_write_hour=4),
        ),
        (
            ended({}, {"output_tokens_details": {"thinking_tokens": 99}}),
            Usage(input=25, reasoning=15),
        ),
        ([b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}', wire.STOP], None),
    ],
    silent=[codec.encode(frame) for frame in _SILENT],
    junk=[
        b"[DONE]",
        b'{"type":5}',
        b'{"type":"content_block_delta","index":"x"}',
        b'{"type":"content_block_delta","delta":{"text":"\xc3\x28"}}',
        b'{"type":"content_block_delta","delta":{"text":7}}',
        b'{"type":"error","error":' + b"[" * 100_000,
    ],
    broken=[
        (wire.piece(3, text="x"), "block 3"),
        (wire.opened(0, "tool_use", id="a"), "without a name"),
        (wire.opened(0, "server_tool_use", id="a", name=""), "without a name"),
    ],
    unsigned=(*wire.thinking(0, "hm", signature=()), wire.reason("max_tokens")),
    hosted_once=(
        _STRANGER,
        *wire.call(0, "srvtoolu_1", "web_fetch", type="server_tool_use"),
        _RESULT,
        _RESULT,
        _STRANGER,
        wire.reason("end_turn"),
        wire.STOP,
    ),
)
