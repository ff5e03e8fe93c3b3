"""MCP servers that an editor names: their tools are offered to its Session, and end with it."""

from pathlib import Path

from perdure.schema.codec import JsonObject
from perdure.testing import ScriptedModel, text, tool_call
from tests.acceptance.mcp.mcp_project import heard, local
from tests.clients.acp.editor import Editor, select


def named(journal: Path) -> JsonObject:
    """The scripted server as an editor names it."""
    program, *arguments = local(journal)["command"]
    return {"name": "it", "command": program, "args": arguments, "env": []}


async def test_tools_of_an_editors_server_are_asked_for_and_called(
    editor: Editor, model: ScriptedModel, project: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    model.turn(tool_call("it_say", {"text": "hello"}))
    model.turn(text("It said so."))
    editor.replies["session/request_permission"] = lambda params: select("once")
    answer = await editor.start()
    assert answer["agentCapabilities"]["mcpCapabilities"]["http"] is True
    opened = await editor.ask("session/new", cwd=str(project), mcpServers=[named(journal)])
    assert await editor.prompt(opened["sessionId"], "say it") == {"stopReason": "end_turn"}
    (call,) = editor.calls().values()
    assert (call["name"], call["status"]) == ("it_say", "completed")
    assert "said hello" in str(call["content"])
    assert [each["method"] for each in editor.asked] == ["session/request_permission"]


async def test_loading_a_session_replaces_its_servers(
    editor: Editor, model: ScriptedModel, project: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    model.turn(text("First."))
    model.turn(text("Second."))
    await editor.start()
    opened = await editor.ask("session/new", cwd=str(project), mcpServers=[named(journal)])
    session = opened["sessionId"]
    await editor.prompt(session, "go")
    assert heard(journal)
    assert any(tool.name == "it_say" for tool in model.requests[0].tools)
    await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    await editor.prompt(session, "go on")
    assert not any(tool.name == "it_say" for tool in model.requests[1].tools)
