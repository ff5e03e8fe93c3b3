"""The built-in model: it drives real tools by a script and says that it is no AI."""

import pytest

from perdure.core.compaction import summary_request
from perdure.core.session import recovery
from perdure.llm.demo import model, script, tasks
from perdure.llm.demo.model import demo_call
from perdure.llm.event import Finish, LLMEvent, TextDelta, ToolCall
from perdure.llm.message import (
    LLMMessage,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    split_segments,
)
from perdure.llm.request import LLMRequest, ToolDefinition
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef

TOOLS = ("bash", "edit", "glob", "grep", "read", "task", "write")


def request(*messages: LLMMessage, tools: tuple[str, ...] = TOOLS) -> LLMRequest:
    return LLMRequest(
        model=ModelRef(id="demo", provider_id="demo"),
        system=(),
        segments=split_segments(messages),
        tools=tuple(ToolDefinition(name, "", {}) for name in tools),
    )


def prompt(text: str) -> LLMMessage:
    return LLMMessage("user", (TextPart(text),))


async def answer(*messages: LLMMessage, tools: tuple[str, ...] = TOOLS) -> list[LLMEvent]:
    return [e async for batch in demo_call(request(*messages, tools=tools)) for e in batch]


def said(events: list[LLMEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def called(events: list[LLMEvent]) -> ToolCall | None:
    return next((event for event in events if isinstance(event, ToolCall)), None)


async def play(text: str, results: list[ToolResult]) -> tuple[list[ToolCall], str]:
    """Run a task to its end, giving one result for each call."""
    conversation = [prompt(text)]
    calls: list[ToolCall] = []
    while (call := called(events := await answer(*conversation))) is not None:
        calls.append(call)
        result = ToolResultPart(call.id, call.name, results[len(calls) - 1])
        conversation += (
            LLMMessage("assistant", (ToolCallPart(call.id, call.name, call.input),)),
            LLMMessage("tool", (result,)),
        )
    return calls, said(events)


@pytest.mark.parametrize(
    ("text", "tool", "input"),
    [
        ("list the files", "glob", {"pattern": "**/*"}),
        ("Please show me all files here", "glob", {"pattern": "**/*"}),
        ('find the text "a.b"', "grep", {"pattern": r"a\.b"}),
        ("search for needle", "grep", {"pattern": "needle"}),
        ("run `uname -a`", "bash", {"command": "uname -a"}),
        ("run the command: ls -l", "bash", {"command": "ls -l"}),
        (
            "create a file hello.txt with Hello!",
            "write",
            {"path": "hello.txt", "content": "Hello!\n"},
        ),
        (
            'write "src/a.py" containing "x = 1"',
            "write",
            {"path": "src/a.py", "content": "x = 1\n"},
        ),
        ("show me a permission request", "read", {"path": "/etc/hosts"}),
        ("read Makefile", "read", {"path": "Makefile"}),
        (
            "use the explore agent to list the files",
            "task",
            {
                "subagent_type": "explore",
                "description": "list the files",
                "prompt": "list the files",
            },
        ),
        ("show me the file src/a.py", "read", {"path": "src/a.py"}),
        ("list the files in src", "glob", {"pattern": "src/**/*"}),
        ("delete old.txt", "bash", {"command": "rm -- old.txt"}),
        ("rename a.txt to b.txt", "bash", {"command": "mv -n -- a.txt b.txt"}),
        (
            'add "a; $(x)" to a.txt',
            "bash",
            {"command": "printf '%s\\n' 'a; $(x)' >> a.txt"},
        ),
        ('write "Hi" into a.txt', "write", {"path": "a.txt", "content": "Hi\n"}),
        ("what files are there?", "glob", {"pattern": "**/*"}),
        ("find all files", "glob", {"pattern": "**/*"}),
        ("find all files with the word milk", "grep", {"pattern": "milk"}),
        ('run the command "date"', "bash", {"command": "date"}),
        ("create a folder src/new", "bash", {"command": "mkdir -p -- src/new"}),
        ("copy a.txt to b.txt", "bash", {"command": "cp -n -- a.txt b.txt"}),
        (
            'add a line "eggs" at the end of a.txt',
            "bash",
            {"command": "printf '%s\\n' eggs >> a.txt"},
        ),
        ("change hello to goodbye in a.txt", "read", {"path": "a.txt"}),
        (
            'create a.py with print("hi")',
            "write",
            {"path": "a.py", "content": 'print("hi")\n'},
        ),
    ],
)
async def test_a_task_calls_its_tool(text: str, tool: str, input: JsonObject) -> None:
    events = await answer(prompt(text))
    assert said(events).startswith(script.INTRODUCTION)
    assert (call := called(events)) is not None
    assert (call.name, call.input) == (tool, input)
    assert events[-1] == Finish("tool-calls")


async def test_every_example_it_gives_is_one_it_knows() -> None:
    fallback = said(await answer(prompt("hello")))
    for task in tasks.TASKS:
        assert task.example in fallback
        match = task.pattern.search(task.example)
        assert match is not None
        assert script.parts_of(task.example) == (task.make(match),)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('create a.txt with "milk" and then show it to me', "a.txt"),
        ("rename a.txt to b.txt, then read it", "b.txt"),
        ("create a.txt. Then create b.txt and print that file", "b.txt"),
    ],
)
def test_it_is_the_file_of_the_part_before(text: str, path: str) -> None:
    last = script.parts_of(text)[-1]
    assert [(call.tool, call.input) for call in last.calls] == [("read", {"path": path})]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("open a.txt and tell me what is in it", "tell me what is in it"),
        ("list the files; then count the lines", "count the lines"),
    ],
)
def test_what_it_does_not_do_is_said(text: str, left: str) -> None:
    assert script.parts_of(text)[-1].closing.endswith(f"this part: {left}")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("list the files here, then create notes.txt", ["list the files here", "create notes.txt"]),
        ("Read a.md. Run the tests!", ["Read a.md", "Run the tests!"]),
        ("read a.md and then read b.md", ["read a.md", "read b.md"]),
        ("1. list the files\n2. delete a.txt", ["list the files", "delete a.txt"]),
        ("- read a.md\n- read b.md", ["read a.md", "read b.md"]),
        ("first read a.md; finally run the tests", ["read a.md", "run the tests"]),
        ("create a.txt with milk, bread and tea", ["create a.txt with milk, bread and tea"]),
        ("run `ls; then list files`, then stop", ["run `ls; then list files`", "stop"]),
        ('write "a, then run b" into c.txt', ['write "a, then run b" into c.txt']),
        ("list the files, then dance", ["list the files", "dance"]),
        ("list the files and after that read a.md", ["list the files", "read a.md"]),
    ],
)
def test_a_prompt_is_divided_where_a_new_request_begins(text: str, parts: list[str]) -> None:
    assert script.divide(text) == parts


async def test_the_parts_of_a_prompt_are_done_one_after_the_other() -> None:
    results = [ToolResult("text", "a.py"), ToolResult("text", "ok"), ToolResult("text", "3 passed")]
    calls, closing = await play(
        "list the files, then create b.txt with Hi and run the tests", results
    )
    assert [call.name for call in calls] == ["glob", "write", "bash"]
    assert calls[1].input == {"path": "b.txt", "content": "Hi\n"}
    assert "3 passed" in closing
    assert "a.py" not in closing


async def test_what_a_part_found_is_told_before_the_next_one_begins() -> None:
    events = await answer(
        prompt("list the files, then dance, then read a.py"),
        LLMMessage("assistant", (ToolCallPart("call_0", "glob", {}),)),
        LLMMessage("tool", (ToolResultPart("call_0", "glob", ToolResult("text", "a.py")),)),
    )
    told = said(events)
    assert told.index("a.py") < told.index("does not know how to do this part: dance")
    assert told.endswith("The read tool reads a.py.")


async def test_tests_that_a_restart_interrupted_are_run_again_and_the_rest_follows() -> None:
    interrupted = ToolResult("error", recovery.OUTCOME_UNKNOWN)
    done = ToolResult("text", "ok")
    calls, _ = await play("run the tests, then list the files", [interrupted, done, done])
    assert [call.name for call in calls] == ["bash", "bash", "glob"]


async def test_a_command_that_a_restart_interrupted_is_not_run_again() -> None:
    interrupted = ToolResult("error", recovery.OUTCOME_UNKNOWN)
    calls, closing = await play("run `rm x`, then list the files", [interrupted])
    assert [call.name for call in calls] == ["bash"]
    assert "outcome unknown" in closing


def test_texts_of_the_runtime_are_recognised_as_the_runtime_writes_them() -> None:
    assert recovery.INTERRUPTED == model.INTERRUPTED
    assert recovery.GO_ON.startswith(model.GO_ON)


async def test_an_answer_that_is_asked_for_again_belongs_to_the_same_prompt() -> None:
    events = await answer(prompt("list the files"), prompt(recovery.GO_ON))
    assert (call := called(events)) is not None
    assert call.name == "glob"


@pytest.mark.parametrize(
    ("text", "input"),
    [
        (
            "replace `a - b` with `a + b` in cart.py",
            {"path": "cart.py", "oldString": "a - b", "newString": "a + b"},
        ),
        (
            "in cart.py, change 'x' to 'y'",
            {"path": "cart.py", "oldString": "x", "newString": "y"},
        ),
    ],
)
async def test_a_replacement_reads_the_file_and_edits_it(text: str, input: JsonObject) -> None:
    done = ToolResult("text", "ok")
    calls, _ = await play(text, [done, done])
    assert [call.name for call in calls] == ["read", "edit"]
    assert calls[1].input == input


async def test_a_replacement_without_a_file_says_what_is_missing() -> None:
    events = await answer(prompt("replace `a` with `b`"))
    assert called(events) is None
    assert "needs the name of the file" in said(events)


async def test_an_edit_takes_three_steps_and_shows_the_file() -> None:
    done = ToolResult("text", "ok")
    calls, closing = await play("do the edit demo", [done, done, ToolResult("text", "new line")])
    assert [call.name for call in calls] == ["write", "edit", "read"]
    assert len({call.id for call in calls}) == 3
    assert calls[1].input["oldString"] in calls[0].input["content"]
    assert "new line" in closing


async def test_a_failing_tool_ends_the_script_plainly() -> None:
    calls, closing = await play("do the edit demo", [ToolResult("error", "disk full")])
    assert len(calls) == 1
    assert "disk full" in closing
    assert "failed" in closing


async def test_a_new_prompt_starts_over() -> None:
    events = await answer(
        prompt("list the files"),
        LLMMessage("assistant", (ToolCallPart("call_0", "glob", {}),)),
        LLMMessage("tool", (ToolResultPart("call_0", "glob", ToolResult("text", "a")),)),
        prompt("run the tests"),
    )
    assert (call := called(events)) is not None
    assert call.name == "bash"


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    events = await answer(prompt("list the files"), tools=("read",))
    assert called(events) is None
    assert "needs the glob tool" in said(events)
    assert events[-1] == Finish("stop")


@pytest.mark.parametrize("text", ["", "Solve world hunger", "🌍" * 5000, "find " * 100_000])
async def test_anything_else_gets_an_honest_answer(text: str) -> None:
    events = await answer(prompt(text))
    assert "not an AI" in said(events)


async def test_no_conversation_at_all_is_answered_too() -> None:
    assert "does not understand" in said(await answer())


async def test_long_results_are_cut() -> None:
    _, closing = await play("list the files", [ToolResult("text", "x" * 100_000)])
    assert len(closing) < 5_000


async def test_the_same_conversation_gets_the_same_answer() -> None:
    assert await answer(prompt("explain this runtime")) == await answer(
        prompt("explain this runtime")
    )


async def test_asked_to_condense_it_repeats_prompts_and_says_it_is_no_ai() -> None:
    conversation = "[User]: create a file a.txt\n\n[Assistant]: done\n\n[User]: run the tests"
    events = await answer(prompt(summary_request.request_text(conversation)), tools=())
    assert called(events) is None
    assert "not an AI" in said(events)
    assert "- create a file a.txt\n- run the tests" in said(events)
    assert "2 prompts and 1 answers" in said(events)
    for section in ("Objective", "Important Details", "Work State", "Next Move", "Relevant Files"):
        assert f"## {section}\n" in said(events)
