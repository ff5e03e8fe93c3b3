"""Clients that others wrote: the official SDK of Python as oracle, and acpx from npm."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonValue
from tests.clients.acp.agent_process import program
from tests.clients.equipment import Equipment
from tests.support import node
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.tidy.source_tree import ROOT

ASK_EDITS: Final = [{"action": "edit", "resource": "*", "effect": "ask"}]
EDIT: Final = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
SECONDS_MAX: Final = 30

AcpxCommand = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def settings() -> dict[str, object]:
    return {"permissions": ASK_EDITS}


@pytest.fixture
def acpx(equipment: Equipment, folders: ProjectFolders, tmp_path: Path) -> AcpxCommand:
    """Runs acpx with our agent, with a home of its own."""
    agent = tmp_path / "agent"
    agent.write_text(
        f"#!/bin/sh\nPYTHONPATH={ROOT / 'src'} exec {' '.join(program())}\n", encoding="utf-8"
    )
    agent.chmod(0o755)
    script = equipment.folder / "node_modules" / "acpx" / "dist" / "cli.js"

    async def run(*arguments: str) -> tuple[int, str]:
        command = (node.node(), str(script), "--agent", str(agent), "--cwd", str(folders.project))
        path = f"{Path(node.node()).parent}:{folders.variables['PATH']}"
        return await node.run(
            *command,
            *arguments,
            environment={**folders.variables, "PATH": path},
            directory=folders.project,
            seconds_max=SECONDS_MAX,
        )

    return run


async def test_acpx_runs_a_prompt_and_allows_what_is_asked(
    acpx: AcpxCommand, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(EDIT), text("All done."))
    code, output = await acpx("--approve-all", "exec", "change it")
    assert (code, "All done." in output) == (0, True), output
    assert (folders.project / "notes.txt").read_text() == "one\n2\nthree\n"


async def test_acpx_can_refuse_everything(
    acpx: AcpxCommand, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(EDIT), text("All done."))
    _, output = await acpx("--deny-all", "exec", "change it")
    assert (folders.project / "notes.txt").read_text() == "one\ntwo\nthree\n", output


async def test_acpx_keeps_a_session_over_processes(
    acpx: AcpxCommand, provider: ScriptedProvider
) -> None:
    provider.then(text("First."), text("Second."))
    for arguments, expected in (
        (("sessions", "new"), ""),
        (("prompt", "one"), "First."),
        (("set-mode", "plan"), ""),
        (("prompt", "two"), "Second."),
        (("sessions", "close"), ""),
    ):
        code, output = await acpx("--approve-all", *arguments)
        assert (code, expected in output) == (0, True), output
    assert provider.requests[-1].texts("user")[:1] == ["one"]


async def test_the_official_sdk_decodes_every_message(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    """The rows of the protocol, driven by the models and the client of the SDK."""
    question = {
        "questions": [
            {
                "question": "Which?",
                "header": "Which",
                "options": [{"label": "red", "description": "warm"}],
            }
        ]
    }
    todos = {"todos": [{"content": "write", "status": "pending", "priority": "high"}]}
    provider.then(
        calls(Call("todowrite", todos), saying="Plan."),
        calls(EDIT),
        calls(Call("question", question)),
        text("All done."),
        text("Again."),
    )
    acp = import_module("acp")
    client = _SdkClient(acp)
    variables = {**folders.variables, "PYTHONPATH": str(ROOT / "src")}
    directory = str(folders.project)
    async with (
        asyncio.timeout(SECONDS_MAX),
        acp.spawn_agent_process(
            client, *program(), env=variables, cwd=directory, use_unstable_protocol=True
        ) as (connection, _),
    ):
        schema = acp.schema
        await connection.initialize(
            protocol_version=1,
            client_capabilities=schema.ClientCapabilities(),
        )
        opened = await connection.new_session(cwd=directory, mcp_servers=[])
        session = opened.session_id
        answer = await connection.prompt(session_id=session, prompt=[acp.text_block("go")])
        assert answer.stop_reason == "end_turn"
        kinds = {update.session_update for update in client.updates}
        assert kinds >= {
            *("agent_message_chunk", "tool_call", "tool_call_update", "plan"),
            *("session_info_update", "usage_update", "available_commands_update"),
        }
        assert len(client.asked) == 2, "the edit, and the question as a choice"
        listed = await connection.list_sessions(cwd=directory)
        assert [each.session_id for each in listed.sessions] == [session]
        client.updates.clear()
        await connection.load_session(session_id=session, cwd=directory, mcp_servers=[])
        said = [
            update.content.text
            for update in client.updates
            if update.session_update == "agent_message_chunk"
        ]
        assert said == ["Plan.", "All done."]
        await connection.set_session_mode(session_id=session, mode_id="plan")
        fork = await connection.fork_session(session_id=session, cwd=directory)
        assert fork.session_id != session
        await connection.resume_session(session_id=session, cwd=directory)
        await connection.cancel(session_id=session)
        again = await connection.prompt(session_id=session, prompt=[acp.text_block("more")])
        assert again.stop_reason == "end_turn"
        await connection.close_session(session_id=session)


class _SdkClient:
    """A client of the SDK that allows everything and chooses the first option."""

    def __init__(self, acp: JsonValue) -> None:
        self._acp = acp
        self.updates: list[JsonValue] = []
        self.asked: list[JsonValue] = []

    def on_connect(self, connection: JsonValue) -> None:
        del connection

    async def session_update(self, session_id: str, update: JsonValue, **rest: JsonValue) -> None:
        del session_id, rest
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: JsonValue, options: list[JsonValue], **rest: JsonValue
    ) -> JsonValue:
        del session_id, rest
        self.asked.append(tool_call)
        schema = self._acp.schema
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )
