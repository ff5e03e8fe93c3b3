"""Tool calls that a model wrote into its text, because its server did not recognise them.

Pure, and linear in the length of the text. Understood is what the open models print: a JSON object
with name and arguments, alone, listed or fenced; `<tool_call>`, `[TOOL_CALLS]`, `<function=name>`
and `<|python_tag|>`. Checking an input against its schema, and running it, are not done here.

Invariant: a call is the whole text, or a marked block that begins a line and reaches to the end,
and names a tool that was offered. Whatever else it may be, it is text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec

from perdure.llm.encoding import shared
from perdure.llm.request import ToolDefinition
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value


class PrintedCall(Value):
    name: str
    input: JsonObject


class ParsedAnswer(Value):
    """An answer: what was said, and the calls after it."""

    text: str
    calls: tuple[PrintedCall, ...] = ()


Tools = Mapping[str, ToolDefinition]

_CHARS_MAX: Final = 256 * 1024
"""Of a text with calls: a file that is written is in one. Reading this much takes a moment."""
_BLOCK: Final = "<tool_call>"
_BLOCK_END: Final = "</tool_call>"
_LIST: Final = "[TOOL_CALLS]"
_CODE: Final = "<|python_tag|>"
_FUNCTION: Final = "<function="
_FUNCTION_END: Final = "</function>"
_MARKER: Final = re.compile("|".join(map(re.escape, (_BLOCK, _LIST, _CODE, _FUNCTION))))
_STOP: Final = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>")
"""What some servers leave of the end of an answer."""
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_FENCED: Final = re.compile(r"```(?:json|tool_call)?[ \t]*\n([^`]*)\n[ \t]*```")
_FUNCTION_HEAD: Final = re.compile(r"<function=([^\s<>{}=]{1,256})>")
_PARAMETER: Final = re.compile(r"<parameter=([^\s<>]{1,256})>\n?(.*?)\n?</parameter>\s*", re.DOTALL)
_NAMED: Final = re.compile(r"([^\s{}\[\]]{1,256})(?:\[ARGS\])?\s*(?=\{)")
_GAP: Final = re.compile(r"[\s;]*")
"""What may stand between two calls."""
_SYNTAX: Final = re.compile(r'["{}\[\]]')
_IN_STRING: Final = re.compile(r'["\\]')
_INPUTS: Final = frozenset({"arguments", "parameters"})
_BESIDE: Final = frozenset({"name", "id", "type"})


def parse_calls(text: str, offered: Sequence[ToolDefinition]) -> ParsedAnswer | None:
    """The calls that `text` ends with; None where it is text and nothing else."""
    if len(text) > _CHARS_MAX:
        return None
    tools = {tool.name: tool for tool in offered}
    whole = _without_stop(text)
    said, block = _split_thought(whole)
    fenced = _FENCED.fullmatch(block)
    calls = _written(fenced[1] if fenced else block, tools)
    if calls is None and (marker := _MARKER.search(whole)) is not None:
        said, block = whole[: marker.start()], whole[marker.start() :]
        calls = _marked(block, tools) if _ends_before_block(said) else None
    return ParsedAnswer(said.rstrip(), calls) if calls else None


def parse_answer(text: str, offered: Sequence[ToolDefinition]) -> ParsedAnswer | None:
    """Read an answer that follows llm.tool_fallback.json_schema; None if it does not."""
    value = _decoded(text)
    if shared.is_object(value) and value.keys() == {"text"} and isinstance(value["text"], str):
        return ParsedAnswer(value["text"])
    return parse_calls(text, offered)


# ---- where a block begins -----------------------------------------------------------------------


def _without_stop(text: str) -> str:
    whole = text.strip()
    for token in _STOP:
        whole = whole.removesuffix(token).rstrip()
    return whole


def _ends_before_block(said: str) -> bool:
    """Whether what follows begins a line, outside of any quotation."""
    before = said.rstrip(" \t")
    begins_line = not before or before.endswith(("\n", _THOUGHT_END))
    return begins_line and said.count("```") % 2 == 0


def _split_thought(text: str) -> tuple[str, str]:
    if not text.startswith(_THOUGHT) or _THOUGHT_END not in text:
        return "", text
    thought, _, rest = text.partition(_THOUGHT_END)
    return thought + _THOUGHT_END, rest.strip()


# ---- marked blocks ------------------------------------------------------------------------------


def _marked(block: str, tools: Tools) -> tuple[PrintedCall, ...] | None:
    calls: list[PrintedCall] = []
    at = 0
    while at < len(block):
        if block.startswith(_BLOCK, at):
            # The end may be missing: servers stop at it and leave it out.
            inner, at = _until(block, at + len(_BLOCK), _BLOCK_END)
            read = _function(inner.strip(), tools) or _written(inner, tools)
        elif block.startswith(_FUNCTION, at):
            begin, at = at, _until(block, at, _FUNCTION_END)[1]
            read = _function(block[begin:at], tools)
        elif block.startswith(_LIST, at):
            inner, at = _until(block, at + len(_LIST), _LIST, kept=True)
            read = _written(inner, tools) or _named(inner.strip(), tools)
        elif block.startswith(_CODE, at):
            read, at = _written(block[at + len(_CODE) :], tools), len(block)
        else:
            return None
        if read is None:
            return None
        calls += read
        at = _skipped(block, at)
    return tuple(calls)


def _until(text: str, begin: int, end: str, *, kept: bool = False) -> tuple[str, int]:
    """From `begin` to `end`, or to the end of the text, and where to go on."""
    found = text.find(end, begin)
    if found < 0:
        return text[begin:], len(text)
    return text[begin:found], found if kept else found + len(end)


def _skipped(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return at if gap is None else gap.end()


def _function(text: str, tools: Tools) -> tuple[PrintedCall, ...] | None:
    """`<function=name>`, with a JSON object or with parameters one by one."""
    head = _FUNCTION_HEAD.match(text)
    if head is None or head[1] not in tools or not text.endswith(_FUNCTION_END):
        return None
    body = text[head.end() : -len(_FUNCTION_END)].strip()
    given = _decoded(body) if body.startswith("{") else _parameters(body, tools[head[1]])
    return (PrintedCall(head[1], given),) if shared.is_object(given) else None


def _parameters(body: str, tool: ToolDefinition) -> JsonObject | None:
    known = tool.input_schema.get("properties")
    given: JsonObject = {}
    at = 0
    while at < len(body):
        found = _PARAMETER.match(body, at)
        if found is None or found[1] in given or "<parameter=" in found[2]:
            return None
        schema = known.get(found[1]) if shared.is_object(known) else None
        given[found[1]] = _typed(found[2], schema)
        at = found.end()
    return given


def _typed(text: str, schema: JsonValue) -> JsonValue:
    """A parameter is a text unless its schema says otherwise."""
    kind = schema.get("type", "string") if shared.is_object(schema) else "string"
    if kind == "string":
        return text
    value = _decoded(text)
    return text if value is None and text.strip() != "null" else value


def _named(text: str, tools: Tools) -> tuple[PrintedCall, ...] | None:
    """`name{…}`, or `name[ARGS]{…}`."""
    head = _NAMED.match(text)
    given = None if head is None else _decoded(text[head.end() :])
    if head is None or not shared.is_object(given):
        return None
    return (PrintedCall(head[1], given),) if head[1] in tools else None


# ---- JSON ---------------------------------------------------------------------------------------


def _written(text: str, tools: Tools) -> tuple[PrintedCall, ...] | None:
    """Calls as JSON: objects one after the other, a list of them, or one with a list of them."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    calls: list[PrintedCall] = []
    for piece in _pieces(text.strip()):
        value = _decoded(piece)
        if shared.is_object(value) and value.keys() == {"tool_calls"}:
            value = value["tool_calls"]
        for each in _listed(value):
            call = _call(each, tools)
            if call is None:
                return None
            calls.append(call)
    return tuple(calls) or None


def _listed(value: JsonValue) -> list[JsonValue]:
    return cast("list[JsonValue]", value) if isinstance(value, list) else [value]


def _pieces(text: str) -> Iterator[str]:
    """The JSON values of `text` at its top level; what stands between them is a piece too."""
    begin = at = depth = 0
    while (found := _SYNTAX.search(text, at)) is not None:
        at = found.end()
        if found[0] == '"':
            at = _after_string(text, at)
            continue
        depth += 1 if found[0] in "{[" else -1
        if depth == 0:
            yield text[begin:at]
            begin = at = _skipped(text, at)
    if begin < len(text):
        yield text[begin:]


def _after_string(text: str, at: int) -> int:
    while (found := _IN_STRING.search(text, at)) is not None:
        if found[0] == '"':
            return found.end()
        at = found.end() + 1
    return len(text)


def _call(value: JsonValue, tools: Tools) -> PrintedCall | None:
    if not shared.is_object(value):
        return None
    inner = value.get("function")
    if shared.is_object(inner) and value.keys() <= {"id", "type", "function"}:
        value = inner
    given = _INPUTS & value.keys()
    if len(given) != 1 or value.keys() - given - _BESIDE:
        return None
    name, wanted = value.get("name"), value[next(iter(given))]
    if isinstance(wanted, str):
        wanted = _decoded(wanted)
    if not isinstance(name, str) or name not in tools or not shared.is_object(wanted):
        return None
    return PrintedCall(name, wanted) if value.get("type", "function") == "function" else None


def _decoded(text: str) -> JsonValue:
    """The JSON value of a text; None for what is none."""
    try:
        return codec.decode_any(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
