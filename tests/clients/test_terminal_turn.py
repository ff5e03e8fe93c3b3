"""The published terminal UI: prompts, streamed answers and tool calls."""

import asyncio

import pytest

from tests.clients.terminal import Terminal
from tests.clients.terminal_ui import BUSY, ask, send
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
