"""One recorded answer with everything in it: reasoning, text, two tool calls, usage."""

from typing import Final

from perdure.schema.codec import JsonObject
from perdure.testing.provider_answer import chat_stream


def call(index: int, arguments: str, **named: str) -> JsonObject:
    function: JsonObject = {"arguments": arguments}
    piece: JsonObject = {"index": index, "function": function}
    if named:
        function["name"] = named["name"]
        piece["id"] = named["id"]
    return {"tool_calls": [piece]}


BODY: Final = chat_stream(
    {"reasoning_content": "Let me "},
    {"reasoning_content": "see."},
    {"content": "Grüße 🌍, "},
    {"content": "now."},
    call(0, '{"note":', id="call_a", name="record"),
    call(1, '{"note":"two"}', id="call_b", name="record"),
    call(0, '"ä one"}'),
    finish="tool_calls",
    usage={"prompt_tokens": 100, "completion_tokens": 50},
)
NOTES: Final = ["two", "ä one"]
"""What the two calls record, in the order of their notes."""
