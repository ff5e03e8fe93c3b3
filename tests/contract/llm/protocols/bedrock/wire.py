"""How Bedrock says what every provider says, and what only Bedrock says."""

from collections.abc import Sequence

from perdure.llm.aws.event_stream import AwsFrames
from perdure.llm.encoding.wire_protocol import ModelFacts
from perdure.llm.error import Reason
from perdure.llm.event import Finish, ToolCall, Usage
from perdure.llm.protocols.bedrock.request import BEDROCK_CONVERSE
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.protocols.bedrock import recordings as wire
from tests.contract.llm.protocols.bedrock.recordings import GLOB, READ, SEARCH
from tests.contract.llm.wire import Wire, asked, spoken, thought

COUNTED = Usage(input=25, output=15)


def payloads(frames: Sequence[bytes]) -> list[bytes]:
    reader = AwsFrames(1_000_000)
    return [data for frame in frames for data in reader.feed(frame)]


def ended(**usage: JsonValue) -> list[bytes]:
    return [wire.reason("end_turn"), wire.counts(**usage)]


def refused(message: str) -> JsonObject:
    return {"message": message}


_RESULT, _STRANGER = wire.opened(1, toolResult={"toolUseId": SEARCH}), wire.opened(1, toolResult={})
_EXCEPTIONS: Sequence[tuple[str, str, Reason]] = (
    ("throttlingException", "Too many tokens, please wait before trying again.", "rate-limit"),
    ("internalServerException", "The system encountered an error.", "provider-internal"),
    ("serviceUnavailableException", "Try again later.", "overload"),
    ("modelStreamErrorException", "The model went away.", "unknown"),
    ("validationException", "Input is too long for requested model.", "overflow"),
    ("validationException", "The format of the value is not right.", "invalid-request"),
)

WIRE = Wire(
    offsets="byte offsets, Bedrock",
    protocol=BEDROCK_CONVERSE,
    base_path="",
    facts=ModelFacts(name="anthropic.claude-opus-4-8-v1:0"),
    body_of=b"".join,
    line_ends=(),
    payloads=payloads,
    begin=(wire.begin(),),
    text=wire.text,
    half=wire.text(0, "half")[:-1],
    call=wire.call,
    stop=lambda why: [wire.reason(why), wire.counts()],
    stops={
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "content_filtered": "content-filter",
        "guardrail_intervened": "content-filter",
        "malformed_model_output": "error",
        "malformed_tool_use": "error",
        "something_new": "unknown",
    },
    for_calls="tool_use",
    counted=COUNTED,
    counted_at_reason=None,
    everything=wire.EVERYTHING,
    recordings=wire.RECORDINGS,
    everything_is=[
        *thought("reasoning-0", "Let me ", "see.", kept={"bedrock": {"signature": "RXJvQg=="}}),
        *thought("reasoning-1", kept={"bedrock": {"redactedData": "RW1JdA=="}}),
        *spoken("text-0", "Grüße 🌍, ", "now the files."),
        *asked(READ, "read", '{"path":', '"ä.txt"}'),
        *asked(GLOB, "glob", '{"pattern":"*"}'),
        ToolCall(READ, "read", {"path": "ä.txt"}),
        ToolCall(GLOB, "glob", {"pattern": "*"}),
        Finish("tool-calls", Usage(input=70, output=50, cache_read=30, cache_write=8)),
    ],
    cut_call=(*wire.call(0, "a", "bash"), wire.reason("max_tokens"), wire.counts()),
    error=lambda message: wire.exception("throttlingException", message),
    errors=[
        *((wire.exception(kind, said), f"{kind}: {said}", why) for kind, said, why in _EXCEPTIONS),
        # One that no model of the service knows.
        (
            wire.unmodelled("InternalFailure", "An internal server error occurred"),
            "InternalFailure: An internal server error occurred",
            "provider-internal",
        ),
    ],
    refusals=[
        (429, refused("Too many tokens"), "rate-limit"),
        (400, refused("Input is too long for requested model."), "overflow"),
        (400, refused("The provided model identifier is invalid."), "invalid-request"),
        (403, refused("The security token included in the request is expired"), "authentication"),
        (404, refused("Could not resolve the model."), "invalid-request"),
    ],
    counts=[
        (ended(), COUNTED),
        ([wire.counts(), wire.reason("end_turn")], COUNTED),
        (ended(cacheReadInputTokens=3), Usage(input=25, output=15, cache_read=3)),
        (
            ended(
                cacheWriteInputTokens=9,
                cacheDetails=[{"ttl": "1h", "inputTokens": 4}, {"ttl": "5m", "inputTokens": 5}],
            ),
            Usage(input=25, output=15, cache_write=9, cache_write_hour=4),
        ),
        (ended(inputTokens=-4), Usage(output=15)),
        (ended(inputTokens=None), Usage(output=15)),
        (ended(inputTokens="many"), None),
        (ended(inputTokens=None, outputTokens=None), None),
    ],
    silent=[
        wire.begin(),
        wire.event("somethingNew", stuff=[1]),
        wire.event("contentBlockStart", contentBlockIndex=0),
        wire.event("contentBlockStart", contentBlockIndex=0, start={"novelty": {}}),
        wire.event("contentBlockDelta", contentBlockIndex=0),
        wire.piece(0, novelty="x"),
        wire.piece(0, text=""),
        wire.piece(0, reasoningContent={}),
        wire.piece(0, toolResult=[{"text": "x"}]),
        wire.closed(9),
        wire.framed({":message-type": "event"}, b"{}"),
        wire.framed({}, b"\xff"),
    ],
    junk=[
        b'{"contentBlockDelta":5}',
        b'{"contentBlockDelta":{"contentBlockIndex":"x"}}',
        b'{"contentBlockDelta":{"delta":{"text":7}}}',
        b'{"contentBlockDelta":{"delta":{"text":"\xc3\x28"}}}',
    ],
    broken=[
        (wire.piece(3, toolUse={"input": "x"}), "block 3"),
        (wire.opened(0, toolUse={"toolUseId": "a"}), "without a name"),
    ],
    unsigned=(*wire.reasoning(0, "hm", signature=()), wire.reason("max_tokens")),
    hosted_once=(
        _STRANGER,
        wire.closed(1),
        *wire.call(0, SEARCH, "x", type="server_tool_use"),
        _RESULT,
        wire.closed(1),
        _RESULT,
        wire.closed(1),
        _STRANGER,
        wire.reason("end_turn"),
        wire.counts(),
    ),
)
