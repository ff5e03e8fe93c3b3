"""Tool calls for models without native ones, forced by a JSON Schema.

The tools are described in the system text, and the schema allows two answers: a text, or a call of
one tool with an input of its schema. Earlier calls and results become text.
llm.tool_fallback.text_parser parses the answer; see docs/adr/0020.

Invariant: without tools, a request differs from the protocol's own only in the history.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from perdure.llm.encoding import shared
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.message import LLMMessage, MediaPart, Part, Segment, TextPart, ToolCallPart
from perdure.llm.message import ToolResultPart as Result
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.schema.codec import JsonObject

_GUIDANCE = (
    "Answer with one JSON object and nothing else. To speak to the user, answer"
    ' {"text": "..."}. To use a tool, answer {"name": "<tool>", "arguments": {...}}; the next'
    " message is its result. These are the tools:"
)


def with_json_schema(protocol: WireProtocol) -> WireProtocol:
    """A Chat Completions protocol with calls forced by a schema instead of native ones."""

    def head(request: LLMRequest, facts: ModelFacts) -> JsonObject:
        body = protocol.head(replace(request, tools=(), tool_choice=None), facts)
        if request.tools:
            body["response_format"] = _format(request.tools)
        return body

    def opening(request: LLMRequest, facts: ModelFacts) -> list[JsonObject]:
        described = (_described(request.tools),) if request.tools else ()
        return protocol.opening(replace(request, system=(*request.system, *described)), facts)

    def items(segment: Segment, facts: ModelFacts) -> list[JsonObject]:
        return protocol.items(Segment(tuple(_plain(segment))), facts)

    return replace(
        protocol, name=f"{protocol.name}-constrained", head=head, opening=opening, items=items
    )


def _format(tools: tuple[ToolDefinition, ...]) -> JsonObject:
    ways = [_object({"text": {"type": "string"}}), *map(_call_schema, tools)]
    shape = {"name": "answer", "strict": True, "schema": {"anyOf": ways}}
    return {"type": "json_schema", "json_schema": shape}


def _call_schema(tool: ToolDefinition) -> JsonObject:
    arguments = tool.input_schema
    if b'"$ref"' in shared.json_text(arguments).encode():
        # References resolve from the schema root, which is the answer's schema here.
        arguments = {"type": "object"}
    return _object({"name": {"type": "string", "enum": [tool.name]}, "arguments": arguments})


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _described(tools: tuple[ToolDefinition, ...]) -> str:
    texts = (
        f"## {tool.name}\n{tool.description}\nArguments: {shared.json_text(tool.input_schema)}"
        for tool in tools
    )
    return "\n\n".join((_GUIDANCE, *texts))


def _plain(segment: Segment) -> Iterator[LLMMessage]:
    """The segment with calls as text that the model would print, and results as user text."""
    results: list[Part] = []
    for message in segment.messages:
        if message.role == "tool":
            results += (part for item in message.content for part in _result(item))
        else:
            yield replace(
                message,
                content=tuple(_printed(part, at=at) for at, part in enumerate(message.content)),
            )
    if results:
        yield LLMMessage("user", tuple(results))


def _printed(part: Part, *, at: int) -> Part:
    """A call as text on its own line; other parts unchanged."""
    if not isinstance(part, ToolCallPart) or part.provider_executed:
        return part
    called = shared.json_text({"name": part.name, "arguments": part.input})
    return TextPart(f"\n{called}" if at else called)


def _result(part: Part) -> tuple[TextPart | MediaPart, ...]:
    if not isinstance(part, Result) or part.provider_executed:
        return ()
    result = shared.lower_result(part.result)
    return (TextPart(f"Result of {part.name}:\n{result.text}"), *result.media)
