"""Published JavaScript clients of AG-UI and of the Model Context Protocol."""

import sys
from pathlib import Path

import pytest

from tests.clients.equipment import Equipment
from tests.clients.test_javascript import drive
from tests.support.instance import Instance
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

WRITES = Call("write", {"path": "made.txt", "content": "made\n"})


@pytest.fixture
def settings() -> dict[str, object]:
    return {"permission": {"edit": "ask"}}


async def test_the_client_of_ag_ui_drives_a_turn_with_a_permission(
    equipment: Equipment, instance: Instance, provider: ScriptedProvider
) -> None:
    provider.then(calls(WRITES, saying="I will."), text("Written."), text("Nothing more."))
    told = await drive(
        "ag_ui.mjs",
        *(str(equipment.folder), f"http://127.0.0.1:{instance.api.port}"),
        variables=instance.folders.variables,
        directory=instance.folders.project,
    )
    first = (
        "first RUN_STARTED STEP_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END"
        " TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END STEP_FINISHED RUN_FINISHED"
    )
    messages = (
        "messages user=write it | assistant=I will. | assistant=write"
        " | tool=Created file successfully: made.txt | assistant=Written."
    )
    assert told == [
        first,
        "outcome interrupt 1 tool_call",
        "call true",
        "resumed RUN_FINISHED success",
        messages,
        "lost RUN_FINISHED true",
        "half RUN_FINISHED true",
        "whole RUN_FINISHED true",
        "second turn user=and now | assistant=Nothing more.",
    ]
    # Each prompt and each answer was taken once, however often they came.
    assert (instance.folders.project / "made.txt").read_text() == "made\n"
    assert len(provider.requests) == 3


async def test_the_client_of_mcp_starts_a_worker_and_gets_its_result(
    equipment: Equipment, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(WRITES), text("Written."))
    told = await drive(
        "mcp_workers.mjs",
        *(str(equipment.folder), str(Path(sys.executable).parent / "perdure")),
        variables=folders.variables,
        directory=folders.project,
    )
    assert told == [
        "tools session_start,session_send,session_wait,session_list,session_result,session_reply",
        "asked reply",
        "result idle Written. now",
        "again before",
    ]
