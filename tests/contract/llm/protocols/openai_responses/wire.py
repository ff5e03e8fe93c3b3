"""How OpenAI says in its Responses what every provider says, and what only they say."""

from perdure.llm.event import Finish, HostedToolResult, ToolCall, Usage
from perdure.llm.message import ToolResult
from perdure.llm.protocols.openai_responses.request import OPENAI_RESPONSES
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.llm.protocols.openai_responses import recordings as wire
from tests.contract.llm.wire import Wire, asked, spoken, thought

TOKENS = Usage(input=70, output=30, reasoning=20, cache_read=30)
DONE = wire.completed(None)


def native(id: str, **more: JsonValue) -> dict[str, JsonObject]:
    return {"openai": {"itemId": id} | more}


def call(index: int, id: str | None, name: str, *pieces: str) -> list[bytes]:
    return wire.call(index, name, *pieces, call_id=id)


def failed(error: JsonValue) -> bytes:
    return wire.event("failed", response=wire.response("failed", error=error))


def refused(**error: JsonValue) -> JsonObject:
    return {"error": error}


WIRE = Wire(
    offsets="byte offsets, OpenAI Responses",
    protocol=OPENAI_RESPONSES,
    body_of=wire.body_of,
    begin=(wire.created(),),
    text=wire.message,
    half=wire.message(0, "half")[:3],
    call=call,
    stop=lambda why: [wire.completed() if why == "completed" else wire.incomplete(why)],
    stops={
        "completed": "stop",
        "max_output_tokens": "length",
        "content_filter": "content-filter",
        "something_new": "unknown",
    },
    for_calls="completed",
    calls_early=True,
    counted=TOKENS,
    counted_at_reason=TOKENS,
    text_id="msg_1",
    everything=wire.EVERYTHING,
    recordings=wire.RECORDINGS,
    everything_is=[
        *thought("rs_1:0", "Let me ", "see.", known=native("rs_1"), kept=native("rs_1")),
        *thought(
            "rs_1:1",
            "Files",
            known=native("rs_1"),
            kept=native("rs_1", reasoningEncryptedContent="sealed"),
        ),
        *spoken("msg_1", "Grüße 🌍, ", "now the files."),
        ToolCall("ws_1", "web_search", wire.SEARCH["action"], True, native("ws_1")),
        HostedToolResult("ws_1", ToolResult("json", wire.SEARCH), native("ws_1")),
        *asked("call_a", "read", '{"path":', '"ä.txt"}'),
        ToolCall("call_a", "read", {"path": "ä.txt"}, metadata=native("fc_a")),
        *asked("call_b", "glob", '{"pattern":"*"}'),
        ToolCall("call_b", "glob", {"pattern": "*"}, metadata=native("fc_b")),
        Finish("tool-calls", TOKENS),
    ],
    cut_call=wire.RECORDINGS["cut by length"],
    error=lambda message: wire.event("error", code="server_error", message=message),
    errors=[
        (
            wire.event("error", code="server_error", message="Oops", param=None),
            "server_error: Oops",
            "provider-internal",
        ),
        (
            wire.event(
                "error", error={"type": "invalid_request_error", "code": None, "message": "No"}
            ),
            "invalid_request_error: No",
            "invalid-request",
        ),
        (
            wire.event("error", code="context_length_exceeded", message="Too long"),
            "context_length_exceeded: Too long",
            "overflow",
        ),
        (
            failed({"code": "rate_limit_exceeded", "message": "Slow"}),
            "rate_limit_exceeded: Slow",
            "rate-limit",
        ),
        (failed(None), "The provider failed and did not say why", "unknown"),
        (b'{"error":{"message":"gateway"}}', "gateway", "unknown"),
        (b'{"type":"error","response":null,"message":"odd"}', "odd", "unknown"),
    ],
    refusals=[
        (429, refused(code="rate_limit_exceeded", message="Slow down"), "rate-limit"),
        (400, refused(code="context_length_exceeded", message="Too long"), "overflow"),
        (401, refused(code="invalid_api_key", message="Incorrect key"), "authentication"),
        (404, refused(code="model_not_found", message="No such model"), "invalid-request"),
    ],
    counts=[
        ([wire.completed()], TOKENS),
        ([wire.completed(None)], None),
        ([wire.completed({})], None),
        ([wire.completed({"input_tokens": "many"})], None),
        ([wire.completed({"input_tokens": 5, "output_tokens": 3})], Usage(input=5, output=3)),
        (
            [wire.completed({"input_tokens": 5, "input_tokens_details": {"cached_tokens": 9}})],
            Usage(input=0, cache_read=5),
        ),
        ([wire.completed({"input_tokens": -4, "output_tokens": 2})], Usage(output=2)),
    ],
    silent=[
        wire.event("queued", response=5),
        wire.event("new.delta", delta={"a": 1}, output_index="x", item=[], content_index={}),
        wire.added(0, "novelty", "n_1", content="odd", summary=5),
        wire.done(0, "novelty", "n_1", content="odd", summary=5),
        b"[DONE]",
    ],
    junk=[
        b"{}",
        b'{"type":5}',
        b'{"type":"response.output_text.delta","delta":5}',
        b'{"type":"response.output_text.delta","delta":"a","output_index":[]}',
        b'{"type":"response.output_text.delta","delta":"\xc3\x28"}',
        b'{"type":"response.reasoning_text.delta","delta":{}}',
        b'{"type":"response.function_call_arguments.delta","delta":"a"}',
        b'{"type":"response.output_item.added","item":{"type":"function_call","call_id":"a"}}',
        b'{"type":"response.output_item.added"}',
        b'{"type":"response.output_item.done","item":{"type":"message","content":5}}',
        b'{"type":"response.output_item.done","item":{"type":"web_search_call"}}',
        b'{"type":"response.output_item.done","item":{"type":"web_search_call","id":"\xff"}}',
        b'{"type":"response.completed","response":[]}',
        b'{"type":"error","message":"\xff"}',
    ],
)
