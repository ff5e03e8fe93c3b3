"""The published terminal UI: changes of a Session, the list of Sessions, and a restarted server."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.clients.equipment import Equipment
from tests.clients.terminal import Terminal
from tests.clients.terminal_ui import ask, attached, choose
from tests.support import polling
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


@pytest.fixture
def settings() -> dict[str, object]:
    return {"compaction": {"keep": {"tokens": 1}}}


async def converse(tui: Terminal, provider: ScriptedProvider) -> None:
    """Two turns, the second of which edits a file."""
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
    provider.then(text("First answer."), calls(edit), text("Second answer."))
    await ask(tui, "first prompt", "First answer.")
    await ask(tui, "second prompt", "Second answer.")


async def test_undo_and_redo_change_the_conversation_and_the_files(
    tui: Terminal, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    notes: Path = folders.project / "notes.txt"
    await converse(tui, provider)
    assert notes.read_text() == "one\n2\nthree\n"
    await choose(tui, "/undo", "Undo previous message")
    await tui.until("1 message reverted", "/redo to restore", without=["Second answer."])
    assert notes.read_text() == "one\ntwo\nthree\n"
    tui.press("ctrl+x", "r")
    await tui.until("Second answer.", without=["reverted"])
    assert notes.read_text() == "one\n2\nthree\n"


async def test_a_fork_begins_as_a_copy_of_the_session(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    await converse(tui, provider)
    await choose(tui, "/fork", "Fork session")
    await tui.until("Full session")
    tui.press("enter")
    await tui.until("First answer.", "Second answer.", without=["Full session"])
    provider.then(text("Only in the fork."))
    await ask(tui, "third prompt", "Only in the fork.")
    await choose(tui, "/sessions", "Switch session")
    shown = await tui.until("Sessions", "Today", "ctrl+r")
    assert shown.count("first prompt") >= 2


async def test_a_session_is_renamed_and_found_in_the_list(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    provider.then(text("First answer."))
    await ask(tui, "first prompt", "First answer.")
    await choose(tui, "/rename", "Rename session")
    await tui.until("Rename Session", "enter submit")
    tui.type(" with another title")
    await tui.until("first prompt with another title")
    tui.press("enter")
    await tui.until("First answer.", without=["Rename Session"])
    await choose(tui, "/sessions", "Switch session")
    await tui.until("Sessions", "Today", "first prompt with another title")


async def test_another_model_answers_after_a_switch(
    tui: Terminal, provider: ScriptedProvider
) -> None:
    await choose(tui, "/models", "Switch model")
    await tui.until("Select model", "other-model")
    tui.type("other")
    await tui.until("other-model", without=["Demo"])
    tui.press("enter")
    await tui.until("Build · other-model", without=["Select model"])
    provider.then(text("I am the other one."))
    await ask(tui, "who are you", "I am the other one.")
    assert provider.requests[-1].body["model"] == "other-model"


async def test_the_terminal_goes_on_after_the_server_was_restarted(
    equipment: Equipment, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with AsyncExitStack() as stack:
        async with running(folders) as first:
            port = first.api.port
            tui = await stack.enter_async_context(attached(equipment, folders, port))
            provider.then(text("Before."))
            await ask(tui, "first prompt", "Before.")
        provider.then(text("After."))
        async with running(folders, port=port) as second:
            await polling.until(lambda: second.runtime.hub.has_readers)
            await ask(tui, "second prompt", "After.")


async def test_a_session_is_compacted(tui: Terminal, provider: ScriptedProvider) -> None:
    # Long enough that its summary is shorter.
    provider.then(text(f"{'A long answer. ' * 4_000}And its end."), text("Short answer."))
    await ask(tui, "first prompt", "And its end.")
    await ask(tui, "second prompt", "Short answer.")
    provider.then(text("The summary of it all."))
    await choose(tui, "/compact", "Compact session")
    await tui.until("Compaction", "The summary of it all.")
