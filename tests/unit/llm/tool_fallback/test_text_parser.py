"""Which texts are tool calls that a server did not recognise, and which only look like them."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.llm.request import ToolDefinition
from perdure.llm.tool_fallback import text_parser
from perdure.llm.tool_fallback.text_parser import ParsedAnswer, PrintedCall
from perdure.schema.codec import JsonObject

TOOLS = (
    ToolDefinition("read", "Read a file.", {"type": "object", "properties": {}}),
    ToolDefinition(
        "bash",
        "Run a command.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout": {"type": "integer"},
                "env": {"type": "object"},
            },
        },
    ),
    ToolDefinition("mcp_files-list", "List.", {"type": "object"}),
)


def call(name: str, **wanted: object) -> PrintedCall:
    return PrintedCall(name, wanted)


LS = call("bash", command="ls")
READ = call("read", path="a.py")
JSON = '{"name": "bash", "arguments": {"command": "ls"}}'
OTHER = '{"name": "read", "arguments": {"path": "a.py"}}'
QWEN = "<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>"

CALLS: list[tuple[str, tuple[PrintedCall, ...], str]] = [
    (JSON, (LS,), ""),
    (f"\n\n  {JSON}\n", (LS,), ""),
    ('{"name": "bash", "parameters": {"command": "ls"}}', (LS,), ""),
    ('{"arguments": {"command": "ls"}, "name": "bash"}', (LS,), ""),
    ('{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}', (LS,), ""),
    ('{"type": "function", "name": "bash", "parameters": {"command": "ls"}}', (LS,), ""),
    ('{"id": "x", "name": "bash", "arguments": {"command": "ls"}}', (LS,), ""),
    (f'{{"type": "function", "function": {JSON}}}', (LS,), ""),
    (f'{{"id": "1", "type": "function", "function": {JSON}}}', (LS,), ""),
    (f'{{"tool_calls": [{JSON}]}}', (LS,), ""),
    (f"[{JSON}]", (LS,), ""),
    (f"[{JSON}, {OTHER}]", (LS, READ), ""),
    (f"{JSON}\n{OTHER}", (LS, READ), ""),
    (f"{JSON}; {OTHER}", (LS, READ), ""),
    ('{"name": "read", "arguments": {}}', (call("read"),), ""),
    (
        '{"name": "bash", "arguments": {"command": "grep \'<tool_call>\' a"}}',
        (call("bash", command="grep '<tool_call>' a"),),
        "",
    ),
    ('{"name": "mcp_files-list", "arguments": {}}', (call("mcp_files-list"),), ""),
    (f"```json\n{JSON}\n```", (LS,), ""),
    (f"```\n{JSON}\n```", (LS,), ""),
    (f"```tool_call\n{JSON}\n```\n", (LS,), ""),
    (f"```json\n[{JSON},\n {OTHER}]\n```", (LS, READ), ""),
    (f"<tool_call>\n{JSON}\n</tool_call>", (LS,), ""),
    (f"<tool_call>{JSON}</tool_call>", (LS,), ""),
    (f"<tool_call>\n{JSON}\n</tool_call>\n<tool_call>\n{OTHER}\n</tool_call>", (LS, READ), ""),
    (f"<tool_call>\n{JSON}", (LS,), ""),
    (f"<tool_call>\n{JSON}\n</tool_call><|im_end|>", (LS,), ""),
    (f"Let me look.\n<tool_call>\n{JSON}\n</tool_call>", (LS,), "Let me look."),
    (f"Let me look.\n\n  <tool_call>{JSON}</tool_call>\n", (LS,), "Let me look."),
    (f"<think>hm</think><tool_call>{JSON}</tool_call>", (LS,), "<think>hm</think>"),
    (f"<think>\nhm {{}}\n</think>\n\n{JSON}", (LS,), "<think>\nhm {}\n</think>"),
    (f"```py\nx\n```\n<tool_call>{JSON}</tool_call>", (LS,), "```py\nx\n```"),
    (f"[TOOL_CALLS] [{JSON}]", (LS,), ""),
    (f"[TOOL_CALLS][{JSON}, {OTHER}]</s>", (LS, READ), ""),
    (f"[TOOL_CALLS]{JSON}", (LS,), ""),
    ('[TOOL_CALLS]bash[ARGS]{"command": "ls"}', (LS,), ""),
    ('[TOOL_CALLS]bash{"command": "ls"}', (LS,), ""),
    (
        '[TOOL_CALLS]bash[ARGS]{"command":"ls"}[TOOL_CALLS]read[ARGS]{"path":"a.py"}',
        (LS, READ),
        "",
    ),
    (f"I look.\n[TOOL_CALLS] [{JSON}]", (LS,), "I look."),
    (f"<|python_tag|>{JSON}", (LS,), ""),
    (f"<|python_tag|>{JSON}<|eom_id|>", (LS,), ""),
    (f"<|python_tag|>{JSON}; {OTHER}<|eot_id|>", (LS, READ), ""),
    ('<function=bash>{"command": "ls"}</function>', (LS,), ""),
    ('<function=bash>{"command": "ls"}</function><|eom_id|>', (LS,), ""),
    ("<function=read></function>", (call("read"),), ""),
    (QWEN, (LS,), ""),
    (f"<tool_call>\n{QWEN}\n</tool_call>", (LS,), ""),
    (f"So.\n<tool_call>\n{QWEN}\n</tool_call>", (LS,), "So."),
    (
        (
            "<function=bash><parameter=command>\na\nb\n</parameter>\n"
            "<parameter=timeout>5</parameter>\n<parameter=env>{}</parameter></function>"
        ),
        (call("bash", command="a\nb", timeout=5, env={}),),
        "",
    ),
    (
        "<function=bash><parameter=command>5</parameter><parameter=new>6</parameter></function>",
        (call("bash", command="5", new="6"),),
        "",
    ),
    (
        "<function=bash><parameter=timeout>soon</parameter></function>",
        (call("bash", timeout="soon"),),
        "",
    ),
    (
        '{"name": "bash", "arguments": {"command": "echo \\"}\\" # {[\\\\"}}',
        (call("bash", command='echo "}" # {[\\'),),
        "",
    ),
]

TEXTS = [
    "",
    "   ",
    "Done.",
    "{}",
    "[]",
    "null",
    "[[]]",
    JSON[:-1],
    JSON + "}",
    JSON + " and then?",
    f"Here it is: {JSON}",
    f"Here it is:\n\n{JSON}",
    f"```json\n{JSON}\n```\nRun it.",
    f"Call it like this:\n```json\n{JSON}\n```",
    f"```python\n{JSON}\n```",
    f"```json\n{JSON}\n```\n```json\n{OTHER}\n```",
    '{"name": "rm", "arguments": {}}',
    f'[{JSON}, {{"name": "rm", "arguments": {{}}}}]',
    '{"name": "bash"}',
    '{"name": "bash", "arguments": null}',
    '{"name": "bash", "arguments": ["ls"]}',
    '{"name": "bash", "arguments": "ls"}',
    '{"name": "bash", "arguments": {}, "parameters": {}}',
    '{"name": "bash", "arguments": {}, "age": 5}',
    '{"name": ["bash"], "arguments": {}}',
    '{"name": "BASH", "arguments": {}}',
    '{"name": "bash ", "arguments": {}}',
    '{"type": "object", "name": "bash", "parameters": {}}',
    '{"tool_calls": []}',
    "{'name': 'bash', 'arguments': {}}",
    '{name: "bash", arguments: {}}',
    'bash({"command": "ls"})',
    'bash{"command": "ls"}',
    f"The tag is <tool_call>{JSON}</tool_call>",
    f"Use `<tool_call>{JSON}</tool_call>`",
    f"```\n<tool_call>{JSON}</tool_call>\n```",
    f"Like so:\n```\n<tool_call>{JSON}</tool_call>",
    f"<tool_call>{JSON}</tool_call> is how.",
    f"<tool_call>{JSON}</tool_call>\nNow I wait.",
    "<tool_call></tool_call>",
    "<tool_call>\nbash ls\n</tool_call>",
    f"<tool_call>{JSON[:-1]}</tool_call>",
    f"<tool_call>{JSON}<tool_call>{OTHER}</tool_call>",
    f"A <tool_call> is next.\n<tool_call>{JSON}</tool_call>",
    '<tool_call>{"name": "rm", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "bash", "arguments": {"command": "</tool_call>"}}</tool_call>',
    "[TOOL_CALLS]",
    "[TOOL_CALLS] []",
    "[TOOL_CALLS] bash",
    "[TOOL_CALLS]rm[ARGS]{}",
    "<|python_tag|>print(1)",
    "<|python_tag|>",
    "<function=rm>{}</function>",
    "<function=bash>{}",
    '<function=bash>{"command": "ls"}</function> yes',
    "<function=bash>ls</function>",
    "<function=bash><parameter=command>ls</function>",
    "<function=bash><parameter=a>1</parameter><parameter=a>2</parameter></function>",
    "<function=bash><parameter=a>x<parameter=b>y</parameter></function>",
    "<function=bash><parameter=a>1</parameter> and </function>",
    "<think>" + JSON,
    f"<think>{JSON}</think>",
]


@pytest.mark.parametrize(("text", "calls", "said"), CALLS)
def test_what_open_models_print_is_a_call(
    text: str, calls: tuple[PrintedCall, ...], said: str
) -> None:
    assert text_parser.parse_calls(text, TOOLS) == ParsedAnswer(said, calls)


@pytest.mark.parametrize("text", TEXTS)
def test_what_may_be_anything_else_stays_text(text: str) -> None:
    assert text_parser.parse_calls(text, TOOLS) is None


@pytest.mark.parametrize("text", [case[0] for case in CALLS])
def test_nothing_is_a_call_where_no_tools_are_offered(text: str) -> None:
    assert text_parser.parse_calls(text, ()) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"text": "hello"}', ParsedAnswer("hello")),
        (' {"text": ""} ', ParsedAnswer("")),
        (JSON, ParsedAnswer("", (LS,))),
        ('{"text": 5}', None),
        ('{"text": "a", "name": "bash"}', None),
        ('{"text": "cut o', None),
        ("plain", None),
    ],
)
def test_a_constrained_answer_is_a_text_or_a_call(text: str, expected: ParsedAnswer | None) -> None:
    assert text_parser.parse_answer(text, TOOLS) == expected


HOSTILE: list[Callable[[int], str]] = [
    lambda size: "{" * size,
    lambda size: "[" * size,
    lambda size: '{"' * (size // 2),
    lambda size: '{"' + '\\"' * (size // 2),
    lambda size: "{}" * (size // 2),
    lambda size: JSON * (size // len(JSON)),
    lambda size: "<tool_call>" * (size // 11),
    lambda size: f"<tool_call>{JSON}</tool_call>\n" * (size // 72),
    lambda size: "[TOOL_CALLS]" * (size // 12),
    lambda size: '[TOOL_CALLS]read{"a":1}' * (size // 23),
    lambda size: "<function=bash>" * (size // 15),
    lambda size: "<function=read></function>" * (size // 26),
    lambda size: "<function=bash>" + "<parameter=a>" * (size // 13),
    lambda size: "<function=bash>" + "<parameter=a>\n" + "\n" * size + "</function>",
    lambda size: "```json\n" + "\n \t" * (size // 3),
    lambda size: "```" * (size // 3),
    lambda size: "<think>" * (size // 7),
    lambda size: "<|python_tag|>" + " " * size,
    lambda size: "<|python_tag|>{" + "}{" * (size // 2),
    lambda size: "[TOOL_CALLS]" + "a" * size,
    lambda size: "[TOOL_CALLS]a" + " " * size + "x",
]


@pytest.mark.parametrize("make", HOSTILE)
def test_a_hostile_text_costs_time_in_proportion_to_its_length(make: Callable[[int], str]) -> None:
    def seconds(size: int) -> float:
        text = make(size)
        tries: list[float] = []
        for _ in range(2):
            begin = time.process_time()
            text_parser.parse_calls(text, TOOLS)
            tries.append(time.process_time() - begin)
        return min(tries)

    # Quadratic work would take sixteen times as long for four times the text.
    assert seconds(120_000) < 10 * max(seconds(30_000), 0.01)


PIECES = """<tool_call> </tool_call> [TOOL_CALLS] <function=bash> </function> <parameter=a>
    </parameter> <|python_tag|> ``` json x { } [ ] " \\ <think> </think>"""


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES.split(), JSON, OTHER, "\n", " ", "\ud800"]), max_size=12).map(
        "".join
    )
)
def test_whatever_is_found_was_offered_and_said_is_a_beginning(text: str) -> None:
    found = text_parser.parse_calls(text, TOOLS)
    if found is not None:
        assert text.lstrip().startswith(found.text)
        assert found.calls
        assert {each.name for each in found.calls} <= {tool.name for tool in TOOLS}
        wanted: list[JsonObject] = [each.input for each in found.calls]
        assert all(isinstance(each, dict) for each in wanted)
