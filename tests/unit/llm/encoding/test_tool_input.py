"""The input of a tool call: valid, or why not."""

import pytest

from perdure.llm.encoding import tool_input
from perdure.llm.encoding.tool_input import TOOL_INPUT_CHARS_MAX
from perdure.llm.event import ToolCall, ToolInputInvalid
from perdure.schema.json_values import JSON_VALUES_MAX


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":', "is not JSON"),
        ('{"a":"' + "x" * TOOL_INPUT_CHARS_MAX + '"}', "characters; make it in several calls"),
        ('{"a":[' + "1," * JSON_VALUES_MAX + "1]}", f"has more than {JSON_VALUES_MAX} values"),
        ("[" * (JSON_VALUES_MAX * 3), f"has more than {JSON_VALUES_MAX} values"),
    ],
    ids=["cut", "long", "items", "brackets"],
)
def test_an_input_that_cannot_be_used_says_why(text: str, reason: str) -> None:
    call = tool_input.parse_call("c1", "write", text, cut=False)
    assert isinstance(call, ToolInputInvalid)
    assert reason in call.message


def test_a_long_input_of_a_few_values_is_used() -> None:
    content = "[{,\n" * 100_000
    text = '{"content":"' + content.replace("\n", "\\n") + '"}'
    call = tool_input.parse_call("c1", "write", text, cut=False)
    assert isinstance(call, ToolCall)
    assert call.input == {"content": content}
