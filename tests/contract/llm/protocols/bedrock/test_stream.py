"""Recorded streams in, events out: what only a Bedrock answer says."""

from perdure.llm.event import Finish, HostedToolResult, ToolCall, Usage
from perdure.llm.message import ToolResult
from perdure.schema.codec import JsonObject
from tests.contract.llm.protocols.bedrock.recordings import (
    FOUND,
    HOSTED,
    SEARCH,
    call,
    closed,
    opened,
    piece,
    reason,
    step_all,
)
from tests.contract.llm.wire import asked, spoken, thought
from tests.requirements import requirement


@requirement("S161")
def test_what_the_provider_runs_itself_comes_with_its_result() -> None:
    assert step_all(HOSTED) == [
        *asked(SEARCH, "nova_grounding", '{"que', 'ry":"x"}'),
        ToolCall(SEARCH, "nova_grounding", {"query": "x"}, provider_executed=True),
        HostedToolResult(
            SEARCH, ToolResult("json", FOUND), {"bedrock": {"type": "nova_grounding_result"}}
        ),
        *spoken("text-0", "Found."),
        Finish("stop", Usage(input=25, output=15)),
    ]


def test_a_hosted_failure_keeps_the_providers_own_words() -> None:
    result: JsonObject = {"toolUseId": SEARCH, "type": "x_result", "status": "error"}
    frames = [
        *call(0, SEARCH, "x", type="server_tool_use"),
        opened(1, toolResult=result),
        piece(1, toolResult=[{"text": "no"}]),
        closed(1),
    ]
    kept = {"type": "x_result", "status": "error", "content": [{"text": "no"}]}
    assert step_all(frames)[-1] == HostedToolResult(
        SEARCH, ToolResult("error", [{"text": "no"}]), {"bedrock": kept}
    )


def test_a_block_that_is_never_closed_ends_with_the_next_one() -> None:
    frames = [
        piece(0, reasoningContent={"text": "hm", "signature": "s"}),
        piece(0, text="a"),
        opened(0, toolUse={"toolUseId": "a", "name": "read"}),
        opened(0, toolUse={"toolUseId": "b", "name": "read"}),
        reason("tool_use"),
    ]
    assert step_all(frames) == [
        *thought("reasoning-0", "hm", kept={"bedrock": {"signature": "s"}}),
        *spoken("text-0", "a"),
        *asked("a", "read"),
        *asked("b", "read"),
        ToolCall("a", "read", {}),
        ToolCall("b", "read", {}),
    ]
