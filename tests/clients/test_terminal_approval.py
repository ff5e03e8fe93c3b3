"""The published terminal UI: permission requests and questions are answered on its screen."""

import pytest

from tests.clients.terminal import Terminal
from tests.clients.terminal_ui import BUSY, ask, move, send
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

CHOICES = ("Allow once", "Allow always", "Reject")
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [
        {"label": "Red", "description": "warm"},
        {"label": "Blue", "description": "cold"},
    ],
}


@pytest.fixture
def settings() -> dict[str, object]:
    actions = ("bash", "edit")
    ask = [{"action": each, "resource": "*", "effect": "ask"} for each in actions]
    return {"permissions": ask}


async def test_a_command_is_allowed_once_and_then_always(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    for number in range(2):
        provider.then(calls(Call("bash", {"command": f"echo n{number}"})), text(f"Ran {number}."))
    await send(tui, "first")
    await tui.until("Permission required", "$ echo n0", "Allow once")
    tui.press("enter")
    await tui.until("Ran 0.", without=["Permission required", BUSY])
    await send(tui, "second")
    await tui.until("Permission required", "$ echo n1", "Allow once")
    await move(tui, "right", CHOICES, to="Allow always")
    tui.press("enter")
    await tui.until("Always allow", "Confirm")
    tui.press("enter")
    await tui.until("Ran 1.", without=["Permission required", BUSY])
    provider.then(calls(Call("bash", {"command": "echo n2"})), text("Ran 2."))
    await ask(tui, "third", "Ran 2.")


async def test_a_rejected_edit_changes_nothing_and_ends_the_turn(
    tui: Terminal, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
    await ask(tui, "hello", "ok")
    provider.then(calls(edit))
    await send(tui, "change it")
    await tui.until("Permission required", "Edit notes.txt", "2 - two", "2 + 2", "Reject")
    await move(tui, "right", CHOICES, to="Reject")
    tui.press("enter")
    await tui.until("Edit notes.txt", "ctrl+p", without=["Permission required", BUSY])
    assert "two" in (folders.project / "notes.txt").read_text()
    provider.then(text("Left as it is."))
    await ask(tui, "leave it", "Left as it is.")


async def test_a_question_is_answered_by_its_number(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("question", {"questions": [QUESTION]})), text("Blue it is."))
    await send(tui, "ask me")
    await tui.until("Which colour?", "2. Blue", "enter")
    tui.press("2")
    await tui.until("Blue it is.", without=["Type your own answer", BUSY])
    assert "Blue" in provider.requests[-1].texts("tool")[-1]


async def test_a_question_is_dismissed(tui: Terminal, provider: ScriptedProvider) -> None:
    provider.then(calls(Call("question", {"questions": [QUESTION]})), text("Never mind."))
    await send(tui, "ask me")
    await tui.until("Which colour?", "2. Blue", "esc")
    tui.press("escape")
    await tui.until(without=["Type your own answer", BUSY])
