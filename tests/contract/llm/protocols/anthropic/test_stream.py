"""Recorded streams in, events out: what only an Anthropic Messages answer says."""

import pytest

from perdure.llm.event import Finish, HostedToolResult, ToolCall, ToolInputInvalid, Usage
from perdure.llm.message import ToolResult
from tests.contract.llm.protocols.anthropic.recordings import (
    COMPACTED,
    FOUND,
    HOSTED,
    MCP,
    PAUSED,
    PING,
    SAID,
    STOP,
    call,
    closed,
    opened,
    piece,
    reason,
    step_all,
    text,
)
from tests.contract.llm.wire import asked, spoken, thought
from tests.requirements import requirement


@requirement("S161")
def test_what_the_provider_runs_itself_comes_with_its_result() -> None:
    assert step_all(HOSTED) == [
        *asked("srvtoolu_01A", "web_search", '{"que', 'ry":"x"}'),
        ToolCall("srvtoolu_01A", "web_search", {"query": "x"}, provider_executed=True),
        HostedToolResult(
            "srvtoolu_01A",
            ToolResult("json", FOUND),
            {"anthropic": {"type": "web_search_tool_result"}},
        ),
        *spoken("text-0", "Found."),
        Finish("stop", Usage(input=25, output=15)),
    ]


def test_a_paused_answer_says_that_it_goes_on() -> None:
    *_, finish = step_all(PAUSED)
    assert finish == Finish("stop", Usage(input=25, output=15), paused=True)
    *_, finish = step_all([*text(0, "a"), reason("compaction"), STOP])
    assert isinstance(finish, Finish)
    assert finish.paused
    # Its own calls come first: the results of ours are what it waits for.
    *_, finish = step_all([*call(0, "a", "read", "{}"), reason("pause_turn"), STOP])
    assert finish == Finish("tool-calls", Usage(output=15))


def test_a_call_of_an_mcp_server_keeps_the_server() -> None:
    assert step_all(MCP)[:5] == [
        *asked("mcptoolu_01A", "echo", '{"say":"seen 🌍"}'),
        ToolCall(
            "mcptoolu_01A",
            "echo",
            {"say": "seen 🌍"},
            True,
            {"anthropic": {"type": "mcp_tool_use", "serverName": "files"}},
        ),
        HostedToolResult(
            "mcptoolu_01A", ToolResult("json", SAID), {"anthropic": {"type": "mcp_tool_result"}}
        ),
    ]


def test_a_failed_call_of_an_mcp_server_is_told_and_kept() -> None:
    made = opened(0, "mcp_tool_use", id="mcptoolu_1", name="echo", server_name="s", input={})
    said = [{"type": "text", "text": "no such file"}]
    result = opened(1, "mcp_tool_result", tool_use_id="mcptoolu_1", is_error=True, content=said)
    events = step_all([made, closed(0), result, closed(1), reason("end_turn")])
    native = {"anthropic": {"type": "mcp_tool_result", "content": said}}
    assert events[-1] == HostedToolResult("mcptoolu_1", ToolResult("error", "no such file"), native)


def test_a_summary_of_the_provider_is_kept_where_it_was_made() -> None:
    native = {"anthropic": {"type": "compaction"}}
    assert step_all(COMPACTED)[:-1] == [
        *thought("reasoning-0", "So far: grüße.", known=native, kept=native),
        *spoken("text-0", "Now this."),
    ]


def test_a_hosted_failure_keeps_the_providers_own_words() -> None:
    said = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    result = opened(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=said)
    made = call(0, "srvtoolu_1", "web_search", "{}", type="server_tool_use")
    events = step_all([*made, result, closed(1), reason("end_turn")])
    assert events[-1] == HostedToolResult(
        "srvtoolu_1",
        ToolResult("error", "max_uses_exceeded"),
        {"anthropic": {"type": "web_search_tool_result", "content": said}},
    )


def test_a_hosted_call_with_broken_input_is_never_taken_for_a_call() -> None:
    made = call(0, "srvtoolu_1", "web_search", '{"que', type="server_tool_use")
    result = opened(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[])
    events = step_all([*made, result, reason("max_tokens"), STOP])
    kinds = {type(event) for event in events}
    assert ToolInputInvalid in kinds
    assert not kinds & {ToolCall, HostedToolResult}


def test_input_that_comes_whole_with_its_block_is_taken() -> None:
    events = step_all([*call(0, "a", "read", path="x"), reason("tool_use")])
    assert events[-1] == ToolCall("a", "read", {"path": "x"})


def test_unknown_blocks_and_deltas_are_ignored() -> None:
    frames = [
        opened(0, "container_upload", file_id="f"),
        piece(0, novelty="x"),
        closed(0),
        opened(1, "text", text="a", citations=None),
        piece(1, thinking="not here"),
        piece(1, text=""),
        closed(1),
        PING,
        reason("end_turn"),
    ]
    assert step_all(frames) == spoken("text-0", "a")


def test_a_text_without_words_is_no_part() -> None:
    assert step_all([*text(0), *text(1, ""), reason("end_turn")]) == []


def test_a_block_that_is_never_closed_ends_with_the_next_one() -> None:
    frames = [
        opened(0, "thinking", thinking="hm", signature="s"),
        opened(0, "text", text="a"),
        opened(0, "tool_use", id="a", name="read", input={}),
        opened(0, "tool_use", id="b", name="read", input={}),
        reason("tool_use"),
    ]
    signed = {"anthropic": {"signature": "s"}}
    assert step_all(frames) == [
        *thought("reasoning-0", "hm", known=signed, kept=signed),
        *spoken("text-0", "a"),
        *asked("a", "read"),
        ToolCall("a", "read", {}),
        *asked("b", "read"),
        ToolCall("b", "read", {}),
    ]


@pytest.mark.parametrize("after", ["text", "thinking", "tool_use", "server_tool_use", "new_kind"])
def test_a_complete_call_is_passed_on_when_the_next_block_begins(after: str) -> None:
    called = call(0, "a", "read", '{"path":"x"}')
    assert ToolCall("a", "read", {"path": "x"}) not in step_all(called)
    begun = step_all([*called, opened(1, after, id="srvtoolu_b", name="read")])
    assert begun.count(ToolCall("a", "read", {"path": "x"})) == 1
    ended = step_all([*called, opened(1, after, id="srvtoolu_b", name="read"), reason("tool_use")])
    assert ended.count(ToolCall("a", "read", {"path": "x"})) == 1


def test_the_call_that_the_limit_cut_is_not_run_and_those_before_it_are() -> None:
    frames = [
        *call(0, "a", "read"),
        opened(1, "tool_use", id="b", name="read"),
        reason("max_tokens"),
    ]
    events = step_all([*frames, STOP])
    assert [event.id for event in events if isinstance(event, ToolCall)] == ["a"]
    assert [event.id for event in events if isinstance(event, ToolInputInvalid)] == ["b"]
    assert events[-1] == Finish("length", Usage(output=15))
