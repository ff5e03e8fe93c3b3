"""The published terminal UI: prompts, streamed answers and tool calls."""

import asyncio

import pytest

from tests.clients.terminal import Terminal
from tests.clients.terminal_ui import BUSY, ask, choose, send
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

TODOS = [
    {"content": "write tests", "status": "in_progress", "priority": "high"},
    {"content": "rest", "status": "pending", "priority": "low"},
]


@pytest.fixture
def settings() -> dict[str, object]:
    command = {"template": "Say hello to $ARGUMENTS", "description": "greets"}
    return {"commands": {"hello": command}}


async def test_an_answer_appears_while_it_is_streamed(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    provider.then(text("Hello ", "there", hold=hold))
    await send(tui, "say hello")
    await tui.until("Hello there", BUSY)
    hold.set()
    await tui.until("Hello there", "Build · fake-model", without=[BUSY])


async def test_tool_calls_are_cards(
    tui: Terminal, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
    todos = Call("todowrite", {"todos": TODOS})
    shell = Call("bash", {"command": "echo from the shell", "description": "Greets"})
    provider.then(calls(edit, todos, shell), text("Edited."))
    shown = await ask(tui, "edit it", "Edited.")
    assert (folders.project / "notes.txt").read_text() == "one\n2\nthree\n"
    assert "Edit notes.txt" in shown
    assert "2 - two" in shown
    assert "2 + 2" in shown
    assert "[•] write tests" in shown
    assert "[ ] rest" in shown
    assert "$ echo from the shell" in shown
    assert "  from the shell" in shown


async def test_a_subagent_is_a_card_that_opens_its_session(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    task = {"description": "Look around", "prompt": "look", "subagent_type": "general"}
    provider.then(calls(Call("task", task)), text("The child saw it."), text("All is seen."))
    await ask(tui, "delegate", "All is seen.")
    await tui.until("General Task", "Look around")
    tui.press("ctrl+x", "down")
    await tui.until("The child saw it.", without=["All is seen."])


async def test_escape_twice_interrupts(tui: Terminal, provider: ScriptedProvider) -> None:
    hold = asyncio.Event()
    provider.then(text("Never ", "ending", hold=hold))
    await send(tui, "count")
    await tui.until("Never ending", BUSY)
    tui.press("escape")
    await tui.until("again to interrupt")
    tui.press("escape")
    await tui.until("Never ending", "· interrupted", without=[BUSY])
    hold.set()
    await ask(tui, "go on", "ok")


async def test_a_command_of_the_user_runs_in_the_shell(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    tui.type("!")
    await tui.until("Shell")
    tui.type("echo from the user")
    await tui.until("echo from the user")
    tui.press("enter")
    await tui.until("$ echo from the user", "  from the user", without=[BUSY])
    provider.then(text("I saw it."))
    await ask(tui, "what did I run", "I saw it.")
    assert "from the user" in str(provider.requests[-1].messages)


async def test_a_slash_command_of_the_project_runs_with_its_arguments(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    provider.then(text("Hello, Ada."))
    tui.type("/hello")
    await tui.until("/hello ", "greets")
    tui.press("enter")
    await tui.until("/hello", without=["greets"])
    tui.type("Ada")
    await tui.until("/hello Ada")
    tui.press("enter")
    await tui.until("Say hello to Ada", "Hello, Ada.", without=[BUSY])


async def test_a_file_is_attached_by_its_name(tui: Terminal, provider: ScriptedProvider) -> None:
    provider.then(text("It has three lines."))
    tui.type("read @not")
    await tui.until("notes.txt")
    tui.press("enter")
    await tui.until("read @notes.txt")
    await ask(tui, "please", "It has three lines.")
    assert "one\ntwo\nthree" in provider.requests[-1].texts("user")[-1]


async def test_a_compaction_with_nothing_to_do_says_so(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    await ask(tui, "hello", "ok")
    await choose(tui, "/compact", "Compact session")
    await tui.until("compaction leaves the newest")
