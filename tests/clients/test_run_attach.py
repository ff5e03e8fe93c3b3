"""`opencode run --attach`: one prompt from the command line of the published program."""

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.clients.equipment import Equipment
from tests.clients.terminal_ui import client_variables
from tests.support import node
from tests.support.api import Api
from tests.support.instance import Instance
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, refusal, text

QUESTION = {"question": "Which?", "header": "Q", "options": [{"label": "A", "description": "a"}]}


async def run(equipment: Equipment, instance: Instance, *arguments: str) -> str:
    address = f"http://127.0.0.1:{instance.api.port}"
    code, output = await node.run(
        *(str(equipment.opencode), "run", "--attach", address, *arguments),
        environment=dict(client_variables(instance.folders)),
        directory=instance.folders.project,
    )
    assert code == 0, output
    return output


async def test_text_output_shows_commands_and_the_answer(
    equipment: Equipment, instance: Instance, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("bash", {"command": "echo hi there"})), text("All ", "done."))
    output = await run(equipment, instance, "do", "it")
    assert "$ \x1b[0mecho hi there\nhi there" in output
    assert "All done." in output
    provider.then(text("Continued."))
    assert "Continued." in await run(equipment, instance, "--continue", "and on")
    assert [len(request.texts("user")) for request in provider.requests] == [1, 1, 2]


async def test_json_output_has_every_part_once_it_is_whole(
    equipment: Equipment, instance: Instance, provider: ScriptedProvider, api: Api
) -> None:
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
    provider.then(calls(edit, saying="First."), text("All ", "done."))
    output = await run(equipment, instance, "--format", "json", "--title", "A title", "do it")
    events: list[JsonObject] = [codec.decode_any(line.encode()) for line in output.splitlines()]
    assert [event["type"] for event in events] == [
        *("step_start", "text", "tool_use", "step_finish"),
        *("step_start", "text", "step_finish"),
    ]
    assert [each["part"]["text"] for each in events if each["type"] == "text"] == [
        "First.",
        "All done.",
    ]
    (tool,) = [each["part"] for each in events if each["type"] == "tool_use"]
    assert tool["state"]["metadata"]["diff"].endswith("-two\n+2\n three\n")
    session = await api.get(f"/api/session/{events[0]['sessionID']}")
    assert session["data"]["title"] == "A title"


async def test_the_model_and_files_of_the_command_line_reach_the_provider(
    equipment: Equipment, instance: Instance, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(text("Read."))
    chosen = ("--model", "fake/other-model", "--file", "notes.txt")
    assert "Read." in await run(equipment, instance, *chosen, "--", "read it")
    request = provider.requests[-1]
    assert request.body["model"] == "other-model"
    assert "two" in request.texts("user")[-1]


async def test_the_model_is_not_offered_to_ask_where_there_is_no_person(
    equipment: Equipment, instance: Instance, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("question", {"questions": [QUESTION]})), text("Then not."))
    assert "Then not." in await run(equipment, instance, "ask me")
    offered = {tool["function"]["name"] for tool in provider.requests[0].body["tools"]}
    assert "bash" in offered
    assert "question" not in offered
    assert "Unknown tool" in provider.requests[1].texts("tool")[-1]


async def test_a_failure_of_the_provider_is_printed(
    equipment: Equipment, instance: Instance, provider: ScriptedProvider
) -> None:
    provider.then(refusal(400, {"error": {"message": "no such deployment"}}))
    assert "no such deployment" in await run(equipment, instance, "fail")
