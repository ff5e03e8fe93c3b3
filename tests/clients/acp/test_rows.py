"""Every row of the protocol, spoken by an editor that checks each line by the published schema."""

import asyncio
import base64
from pathlib import Path

import pytest

from perdure.embedded.host import Host
from perdure.llm.error import LLMError
from perdure.schema.codec import JsonObject
from perdure.testing import ScriptedModel, failure, pause, reasoning, text, tool_call
from tests.clients.acp.editor import AgentError, Editor, select

TODOS = {
    "todos": [
        {"content": "write", "status": "in_progress", "priority": "high"},
        {"content": "ask", "status": "cancelled", "priority": "low"},
    ]
}


async def test_the_agent_says_what_it_can_before_a_client_is_opened(editor: Editor) -> None:
    answer = await editor.start()
    assert answer["protocolVersion"] == 1
    assert answer["agentCapabilities"]["loadSession"] is True
    assert set(answer["agentCapabilities"]["sessionCapabilities"]) == {
        *("list", "resume", "close", "delete", "fork"),
    }
    assert [method["id"] for method in answer["authMethods"]] == ["stored"]


async def test_a_login_in_a_terminal_is_offered_to_editors_that_have_one(editor: Editor) -> None:
    answer = await editor.start(auth={"terminal": True})
    login = answer["authMethods"][0]
    assert (login["type"], login["args"]) == ("terminal", ["--login"])
    assert await editor.ask("authenticate", methodId="stored") == {}


async def test_a_turn_is_told_as_it_happens(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(reasoning("I should plan."), tool_call("todowrite", TODOS))
    model.turn(tool_call("write", {"path": "notes.txt", "content": "a\nb\n"}))
    model.turn(text("All done."))
    await editor.start()
    session = await editor.open(str(project))
    assert await editor.prompt(session, "go") == {"stopReason": "end_turn"}
    assert editor.text("agent_thought_chunk") == "I should plan."
    assert editor.text() == "All done."
    assert editor.told("plan")[-1]["entries"] == [
        {"content": "write", "priority": "high", "status": "in_progress"},
        {"content": "(cancelled) ask", "priority": "low", "status": "completed"},
    ]
    written = next(call for call in editor.calls().values() if call["name"] == "write")
    path = str(project / "notes.txt")
    assert (written["status"], written["kind"]) == ("completed", "edit")
    assert written["content"][0] == {"type": "diff", "path": path, "newText": "a\nb\n"}
    assert written["locations"] == [{"path": path, "line": 1}]
    await editor.until(lambda: editor.told("usage_update"))
    assert editor.told("usage_update")[-1]["cost"]["currency"] == "USD"
    assert editor.told("user_message_chunk") == [], "the editor shows its own prompts"
    assert editor.told("session_info_update")[0]["title"]


async def test_a_loaded_session_is_told_whole_and_goes_on(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(reasoning("Think."), tool_call("todowrite", TODOS))
    model.turn(tool_call("read", {"path": "one.txt"}), tool_call("read", {"path": "no.txt"}))
    model.turn(text("First."))
    model.turn(text("Second."))
    await editor.start()
    session = await editor.open(str(project))
    await editor.prompt(session, "go")
    live, editor.updates[:] = editor.calls(), []
    loaded = await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    assert loaded["modes"]["currentModeId"] == "build"
    assert editor.text("user_message_chunk") == "go"
    assert (editor.text("agent_thought_chunk"), editor.text()) == ("Think.", "First.")
    replayed = editor.calls()
    assert list(replayed) == list(live)
    assert [call["status"] for call in replayed.values()] == ["completed", "completed", "failed"]
    assert [call["content"] for call in replayed.values()] == [
        call["content"] for call in live.values()
    ]
    assert len(editor.told("plan")) == 1
    editor.updates.clear()
    await editor.prompt(session, "more")
    assert editor.text() == "Second."


async def test_a_long_session_is_loaded_in_order_and_once(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    for number in range(30):
        model.turn(text(f"{number} "))
    await editor.start()
    session = await editor.open(str(project))
    for number in range(30):
        await editor.prompt(session, f"{number} ")
    expected = editor.text()
    editor.updates.clear()
    await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    assert editor.text() == expected
    assert editor.text("user_message_chunk") == expected


async def test_a_resumed_session_goes_on_without_its_history(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(text("First.")).turn(text("Second."))
    await editor.start()
    session = await editor.open(str(project))
    await editor.prompt(session, "go")
    editor.updates.clear()
    await editor.ask("session/resume", sessionId=session, cwd=str(project))
    await editor.prompt(session, "more")
    assert editor.text() == "Second."


async def test_sessions_are_listed_forked_closed_and_deleted(
    editor: Editor, model: ScriptedModel, project: Path, host: Host
) -> None:
    model.turn(text("First."))
    await editor.start()
    session = await editor.open(str(project))
    await editor.prompt(session, "go")
    fork = await editor.ask("session/fork", sessionId=session, cwd=str(project))
    listed = await editor.ask("session/list", cwd=str(project))
    assert {each["sessionId"] for each in listed["sessions"]} == {session, fork["sessionId"]}
    assert {each["cwd"] for each in listed["sessions"]} == {str(project)}
    assert (await editor.ask("session/list", cwd="/elsewhere"))["sessions"] == []
    assert await editor.ask("session/close", sessionId=session) == {}
    assert await editor.ask("session/delete", sessionId=session) == {}
    with pytest.raises(AgentError) as raised:
        await editor.prompt(session, "hello?")
    assert raised.value.code == -32002
    assert [each.id for each in (await host.sessions.list()).items] == [fork["sessionId"]]


async def test_many_sessions_come_in_pages(editor: Editor, host: Host, project: Path) -> None:
    for _ in range(55):
        await host.sessions.create()
    await editor.start()
    first = await editor.ask("session/list", cwd=str(project))
    rest = await editor.ask("session/list", cursor=first["nextCursor"])
    found = {each["sessionId"] for each in (*first["sessions"], *rest["sessions"])}
    assert (len(first["sessions"]), len(found), "nextCursor" in rest) == (50, 55, False)


async def test_agents_are_modes_and_options(editor: Editor, host: Host, project: Path) -> None:
    await editor.start()
    session = await editor.open(str(project))
    assert await editor.ask("session/set_mode", sessionId=session, modeId="plan") == {}
    await editor.until(lambda: editor.told("config_option_update"))
    assert editor.told("current_mode_update")[-1]["currentModeId"] == "plan"
    answer = await editor.ask(
        "session/set_config_option", sessionId=session, configId="mode", value="build"
    )
    assert {each["id"]: each["currentValue"] for each in answer["configOptions"]} == {
        "mode": "build",
        "model": "scripted/model",
    }
    # Another client changes it.
    (only,) = (await host.sessions.list()).items
    await host.sessions.switch_agent(only.id, "plan")
    await editor.until(lambda: editor.told("current_mode_update")[-1]["currentModeId"] == "plan")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "none"}),
        ("session/set_config_option", {"configId": "model", "value": "no/such"}),
        ("session/set_config_option", {"configId": "thought_level", "value": "high"}),
        ("session/set_config_option", {"configId": "colour", "value": "red"}),
        ("session/set_config_option", {"configId": "model", "value": True}),
    ],
)
async def test_a_choice_that_does_not_exist_is_refused(
    editor: Editor, project: Path, method: str, params: JsonObject
) -> None:
    await editor.start()
    session = await editor.open(str(project))
    with pytest.raises(AgentError) as raised:
        await editor.ask(method, sessionId=session, **params)
    assert raised.value.code == -32602


async def test_a_slash_command_is_expanded_by_the_server(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(text("Hello."))
    await editor.start()
    session = await editor.open(str(project))
    await editor.until(lambda: editor.told("available_commands_update"))
    commands = editor.told("available_commands_update")[-1]["availableCommands"]
    greet = next(command for command in commands if command["name"] == "greet")
    assert (greet["description"], greet["input"]) == ("Say hello", {"hint": "arguments"})
    await editor.prompt(session, "/greet the cat")
    assert "Greet the cat warmly." in str(model.requests[-1])
    assert await editor.prompt(session, "/compact") == {"stopReason": "end_turn"}
    model.turn(text("What?"))
    await editor.prompt(session, "/unknown words")
    assert "/unknown words" in str(model.requests[-1])


async def test_images_and_embedded_files_reach_the_model(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(text("Seen."))
    pixel = base64.b64encode(_PIXEL).decode()
    await editor.start()
    session = await editor.open(str(project))
    unsaved = {"uri": f"file://{project}/one.txt", "mimeType": "text/x-python", "text": "unsaved"}
    linked = {"type": "resource_link", "uri": f"file://{project}/one.txt", "name": "one.txt"}
    blocks = [
        {"type": "text", "text": "look at "},
        {"type": "image", "data": pixel, "mimeType": "image/png"},
        {"type": "resource", "resource": unsaved},
        linked,
    ]
    await editor.ask("session/prompt", sessionId=session, prompt=blocks)
    sent = str(model.requests[-1])
    assert "unsaved" in sent
    assert pixel[:20] in sent
    assert "look at " in sent


async def test_a_cancelled_turn_says_so_and_the_next_prompt_runs(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    held = pause()
    model.turn(text("never ends", hold=held)).turn(text("Next."))
    await editor.start()
    session = await editor.open(str(project))
    running = editor.begin(
        "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}]
    )
    await model.until_asked(1)
    editor.notify("session/cancel", sessionId=session)
    after = editor.prompt(session, "next")
    assert await running == {"stopReason": "cancelled"}
    assert await after == {"stopReason": "end_turn"}
    assert editor.text().endswith("Next.")


async def test_a_request_that_is_taken_back_ends_the_turn(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(text("never ends", hold=pause()))
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "go"}]
    running = editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await model.until_asked(1)
    editor.notify("$/cancel_request", requestId=3)
    assert await running == {"stopReason": "cancelled"}


async def test_a_prompt_while_one_runs_joins_it(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    held = pause()
    model.turn(tool_call("read", {"path": "one.txt"}), text("", hold=held))
    model.turn(text("Both."))
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "first"}]
    running = editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await model.until_asked(1)
    steering = editor.begin(
        "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "steer"}]
    )
    await editor.ask("session/list")
    held.release()
    async with asyncio.timeout(10):
        assert await asyncio.gather(running, steering) == [{"stopReason": "end_turn"}] * 2
    assert len(model.requests) == 2
    assert "steer" in str(model.requests[-1])


async def test_a_session_may_be_loaded_again_while_it_works(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    held = pause()
    model.turn(text("Half. ", hold=held), text("Whole."))
    await editor.start()
    session = await editor.open(str(project))
    blocks = [{"type": "text", "text": "go"}]
    running = editor.begin("session/prompt", sessionId=session, prompt=blocks)
    await model.until_asked(1)
    await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    before = editor.text()
    held.release()
    async with asyncio.timeout(10):
        assert await running == {"stopReason": "end_turn"}
    assert editor.text().removeprefix(before).endswith("Whole.")
    assert editor.text().count("Whole.") == 1


async def test_a_session_that_is_deleted_while_it_works_answers_its_prompt(
    editor: Editor, model: ScriptedModel, project: Path, host: Host
) -> None:
    model.turn(text("never ends", hold=pause()))
    await editor.start()
    await editor.open(str(project))
    (session,) = (await host.sessions.list()).items
    blocks = [{"type": "text", "text": "go"}]
    running = editor.begin("session/prompt", sessionId=session.id, prompt=blocks)
    await model.until_asked(1)
    await host.sessions.delete(session.id)
    async with asyncio.timeout(10):
        (answer,) = await asyncio.gather(running, return_exceptions=True)
    # Its end was still seen, or it was gone before.
    if isinstance(answer, AgentError):
        assert answer.code == -32002
    else:
        assert answer == {"stopReason": "cancelled"}


async def test_a_failing_provider_is_an_error_with_its_words(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(failure(LLMError("authentication", "The key is not valid")))
    await editor.start()
    session = await editor.open(str(project))
    with pytest.raises(AgentError, match="The key is not valid") as raised:
        await editor.prompt(session, "go")
    assert raised.value.code == -32603
    await editor.ask("session/load", sessionId=session, cwd=str(project), mcpServers=[])
    assert "The key is not valid" in editor.text()


async def test_prompts_of_other_clients_are_shown(
    editor: Editor, model: ScriptedModel, project: Path, host: Host
) -> None:
    model.turn(text("Yes."))
    await editor.start()
    await editor.open(str(project))
    (session,) = (await host.sessions.list()).items
    await host.sessions.prompt(session.id, text="from elsewhere")
    await editor.until(lambda: editor.text() == "Yes.")
    assert editor.text("user_message_chunk") == "from elsewhere"


async def test_a_question_without_forms_is_asked_as_a_choice(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(tool_call("question", QUESTION)).turn(text("Blue it is."))
    editor.replies["session/request_permission"] = lambda params: select("option1")
    await editor.start()
    session = await editor.open(str(project))
    assert await editor.prompt(session, "ask me") == {"stopReason": "end_turn"}
    names = [option["name"] for option in editor.asked[0]["params"]["options"]]
    assert names[:2] == ["red: warm", "blue: cold"]
    assert "blue" in str(model.requests[-1])


async def test_a_question_is_a_form_where_the_editor_has_them(
    editor: Editor, model: ScriptedModel, project: Path
) -> None:
    model.turn(tool_call("question", QUESTION)).turn(text("Green it is."))
    editor.replies["elicitation/create"] = lambda params: {
        "action": "accept",
        "content": {"answer1": "green"},
    }
    await editor.start(elicitation={"form": {}})
    session = await editor.open(str(project))
    assert await editor.prompt(session, "ask me") == {"stopReason": "end_turn"}
    asked = editor.asked[0]["params"]
    assert asked["message"] == "Which colour?"
    assert "red: warm" in asked["requestedSchema"]["properties"]["answer1"]["description"]
    assert "green" in str(model.requests[-1])


@pytest.mark.parametrize("action", ["decline", "cancel", "what"])
async def test_a_declined_form_ends_the_run(
    editor: Editor, model: ScriptedModel, project: Path, action: str
) -> None:
    model.turn(tool_call("question", QUESTION))
    editor.replies["elicitation/create"] = lambda params: {"action": action}
    await editor.start(elicitation={"form": {}})
    session = await editor.open(str(project))
    assert await editor.prompt(session, "ask me") == {"stopReason": "end_turn"}
    assert len(model.requests) == 1


QUESTION = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [
                {"label": "red", "description": "warm"},
                {"label": "blue", "description": "cold"},
            ],
        }
    ]
}
_PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
