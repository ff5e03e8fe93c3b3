"""A server on the loopback address that speaks Chat Completions and Responses, from one script.

It decides from the request alone: it calls the function `population` if it is offered and was not
called, answers with JSON if a schema is asked for, and with a sentence otherwise.
"""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from perdure.schema.codec import JsonObject

SENTENCE: Final = "Paris is the capital of France."
COUNTED: Final = "2100000 people live in Paris."
CITY: Final = '{"name": "Paris", "country": "France"}'
_USAGE: Final = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


@contextmanager
def scripted_openai() -> Generator[str]:
    """Serve until the scope ends; the base URL, as OPENAI_BASE_URL takes it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers["content-length"])
        request = json.loads(self.rfile.read(size))
        if self.path.endswith("/responses"):
            self._send("application/json", json.dumps(_response(request)).encode())
        elif request.get("stream"):
            self._send("text/event-stream", _chunks(request))
        else:
            self._send("application/json", json.dumps(_completion(request)).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _decide(request: JsonObject) -> tuple[str, str]:
    """The text to answer with, or the function to call and its arguments."""
    text = json.dumps(request)
    tools = [tool.get("function", tool).get("name") for tool in request.get("tools", [])]
    if "population" in tools and "2100000" not in text:
        return "population", '{"city": "Paris"}'
    if "final_result" in tools:
        return "final_result", CITY
    if "2100000" in text:
        return "", COUNTED
    return "", CITY if "country" in text else SENTENCE


def _response(request: JsonObject) -> JsonObject:
    name, content = _decide(request)
    item: JsonObject = (
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name}
        | {"arguments": content, "status": "completed"}
        if name
        else {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        | {"content": [{"type": "output_text", "text": content, "annotations": []}]}
    )
    details = {"input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0}}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request["model"],
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _USAGE | details | {"output_tokens_details": {"reasoning_tokens": 0}},
    }


def _completion(request: JsonObject) -> JsonObject:
    message, finish = _message(request)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def _chunks(request: JsonObject) -> bytes:
    delta, finish = _message(request)
    for number, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = number
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    frames: list[JsonObject] = [
        {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
    ]
    lines = [f"data: {json.dumps(frame)}\n\n" for frame in frames]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def _message(request: JsonObject) -> tuple[JsonObject, str]:
    name, content = _decide(request)
    if not name:
        return {"role": "assistant", "content": content}, "stop"
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": content},
    }
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
