"""Permission requests in an editor: everything that other clients are shown, and each answer."""

import asyncio
from pathlib import Path

import pytest

from perdure.embedded.host import Host
from perdure.testing import ScriptedModel, text, tool_call
from tests.clients.acp.editor import Editor, select
from tests.support.polling import until

EDIT = tool_call("edit", {"path": "one.txt", "oldString": "one", "newString": "two"})
OPTIONS = ["once", "session", "always", "reject", "without"]


@pytest.fixture
def config() -> dict[str, object]:
    asks = [{"action": each, "resource": "*", "effect": "ask"} for each in ("edit", "bash")]
    return {"permissions": asks}


async def test_a_request_shows_the_diff_and_what_always_means(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(EDIT).turn(text("Done."))
    editor.replies["session/request_permission"] = lambda params: select("once")
    await editor.start()
    session = await editor.open(str(project))
    assert await editor.prompt(session, "go") == {"stopReason": "end_turn"}
    asked = editor.asked[0]["params"]
    call = asked["toolCall"]
    diff = {
        "type": "diff",
        "path": str(project / "one.txt"),
        "oldText": "one\n",
        "newText": "two\n",
    }
    assert call["toolCallId"] in editor.calls()
    assert diff in call["content"]
    assert call["locations"][0]["path"] == str(project / "one.txt")
    assert [option["optionId"] for option in asked["options"]] == OPTIONS
    assert "from now on" in call["content"][0]["content"]["text"]
    assert (project / "one.txt").read_text() == "two\n"


async def test_a_command_is_shown_whole_with_its_notes(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    command = "echo one # \u202eharmless\necho two"
    model.turn(tool_call("bash", {"command": command})).turn(text("Done."))
    editor.replies["session/request_permission"] = lambda params: select("without")
    await editor.start()
    session = await editor.open(str(project))
    await editor.prompt(session, "go")
    shown = editor.asked[0]["params"]["toolCall"]["content"][0]["content"]["text"]
    assert "echo one # \\u202eharmless\necho two" in shown
    assert "the command has 2 lines" in shown
    assert "it has a comment" in shown


@pytest.mark.parametrize(
    ("option", "requests", "after"),
    [
        ("once", 2, "two\n"),
        ("always", 2, "two\n"),
        ("session", 2, "two\n"),
        ("reject", 1, "one\n"),
        ("without", 2, "one\n"),
        ("no-such-option", 1, "one\n"),
    ],
)
async def test_each_answer_means_what_it_says(
    editor: Editor,
    model: ScriptedModel,
    project: Path,
    host: Host,
    option: str,
    requests: int,
    after: str,
) -> None:
    model.turn(EDIT).turn(text("Done."))
    editor.replies["session/request_permission"] = lambda params: select(option)
    await editor.start()
    session = await editor.open(str(project))
    assert await editor.prompt(session, "go") == {"stopReason": "end_turn"}
    assert len(model.requests) == requests
    assert (project / "one.txt").read_text() == after
    saved = await host.permissions.saved()
    scopes = [str(rule.scope) for rule in saved]
    assert len(saved) == (option in {"always", "session"})
    assert ("session" in scopes) == (option == "session")


@pytest.mark.parametrize(
    "result", [None, {}, [], "yes", {"outcome": "selected"}, {"outcome": {"outcome": "cancelled"}}]
)
async def test_an_answer_that_says_nothing_allows_nothing(
    editor: Editor, model: ScriptedModel, project: Path, result: object
) -> None:
    model.turn(EDIT)
    editor.replies["session/request_permission"] = lambda params: result
    await editor.start()
    session = await editor.open(str(project))
    await editor.prompt(session, "go")
    assert (project / "one.txt").read_text() == "one\n"


async def test_an_editor_that_cannot_ask_refuses(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(EDIT)
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "go"}]
    running = editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await editor.until(lambda: editor.asked)
    error = {"code": -32601, "message": "Method not found"}
    editor.send(id=editor.asked[0]["id"], error=error)
    async with asyncio.timeout(10):
        assert await running == {"stopReason": "end_turn"}
    assert (project / "one.txt").read_text() == "one\n"


async def test_the_first_of_two_answers_counts(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(EDIT).turn(text("Done."))
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "go"}]
    running = editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await editor.until(lambda: editor.asked)
    for option in ("once", "reject"):
        editor.send(id=editor.asked[0]["id"], result=select(option))
    async with asyncio.timeout(10):
        assert await running == {"stopReason": "end_turn"}
    assert (project / "one.txt").read_text() == "two\n"


async def test_a_dialog_is_taken_back_when_another_client_answers(
    editor: Editor, model: ScriptedModel, project: Path, host: Host
) -> None:
    model.turn(EDIT).turn(text("Done."))
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "go"}]
    running = editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await editor.until(lambda: editor.asked)
    (asked,) = await host.permissions.requests()
    await host.sessions.permissions.reply(asked.session_id, asked.id, "once")
    async with asyncio.timeout(10):
        assert await running == {"stopReason": "end_turn"}
    await editor.until(lambda: editor.taken_back == [editor.asked[0]["id"]])


async def test_a_cancelled_turn_takes_its_dialog_back(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(EDIT)
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "go"}]
    running = editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await editor.until(lambda: editor.asked)
    editor.notify("session/cancel", sessionId=session)
    async with asyncio.timeout(10):
        assert await running == {"stopReason": "cancelled"}
    await editor.until(lambda: editor.taken_back)


async def test_a_request_stays_when_the_editor_goes_and_is_asked_by_the_next(
    editor: Editor, model: ScriptedModel, project: Path, host: Host
) -> None:
    model.turn(EDIT).turn(text("Done."))
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "go"}]
    editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await editor.until(lambda: editor.asked)
    editor.replies["session/request_permission"] = lambda params: select("once")
    await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    await until(lambda: (project / "one.txt").read_text() == "two\n")
    assert len(editor.asked) == 2
    assert editor.taken_back == [editor.asked[0]["id"]]


async def test_a_subagent_asks_at_the_session_of_its_parent(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    task = {"description": "edit", "prompt": "edit it", "subagent_type": "general"}
    model.turn(tool_call("task", task)).turn(EDIT).turn(text("Edited.")).turn(text("Done."))
    editor.replies["session/request_permission"] = lambda params: select("once")
    await editor.start()
    session = await editor.open(str(project))
    assert await editor.prompt(session, "go") == {"stopReason": "end_turn"}
    assert editor.asked[0]["params"]["sessionId"] == session
    assert (project / "one.txt").read_text() == "two\n"
