"""The agent as a process: killed and started again, left by its editor, attached to a server."""

import asyncio
import json
import subprocess
from pathlib import Path

from perdure.schema.codec import JsonObject
from tests.clients.acp.agent_process import program, started
from tests.clients.acp.editor import select
from tests.clients.acp.published_schema import PublishedSchema
from tests.support.instance import Instance
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.tidy.source_tree import ROOT

GO = [{"type": "text", "text": "go"}]


async def test_a_killed_agent_goes_on_in_the_next_process(
    schema: PublishedSchema, folders: ProjectFolders, provider: ScriptedProvider, tmp_path: Path
) -> None:
    """The turn is cut behind a tool call: its result is sent, and each thing is told once."""
    held = asyncio.Event()
    provider.then(
        calls(Call("read", {"path": "notes.txt"}), saying="Reading."),
        text("lost", hold=held),
    )
    provider.otherwise = lambda request: text("Read, and done.")
    async with started(schema, folders) as first:
        await first.start()
        session = await first.open(str(folders.project))
        first.begin("session/prompt", sessionId=session, prompt=GO)
        await first.until(lambda: "lost" in first.text())
        await first.kill()
    held.set()
    async with started(schema, folders, log=tmp_path / "log") as second:
        await second.start()
        await second.ask("session/load", sessionId=session, cwd=str(folders.project), mcpServers=[])
        await second.until(lambda: "Read, and done." in second.text())
        assert second.text("user_message_chunk") == "go"
        assert second.text().count("Reading.") == 1
        assert second.text().count("Read, and done.") == 1
        assert [call["status"] for call in second.calls().values()] == ["completed"]
        assert await second.prompt(session, "more") == {"stopReason": "end_turn"}
    assert (tmp_path / "log").read_text() == ""


async def test_a_resumed_session_of_a_killed_agent_goes_on_too(
    schema: PublishedSchema, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(Call("bash", {"command": "echo begun; sleep 60"})))
    provider.otherwise = lambda request: text("After the kill.")
    async with started(schema, folders) as first:
        first.replies["session/request_permission"] = lambda params: select("once")
        await first.start()
        session = await first.open(str(folders.project))
        first.begin("session/prompt", sessionId=session, prompt=GO)
        await first.until(
            lambda: any(call["status"] == "in_progress" for call in first.calls().values())
        )
        await first.kill()
    async with started(schema, folders) as second:
        await second.start()
        await second.ask("session/resume", sessionId=session, cwd=str(folders.project))
        await second.until(lambda: second.text() == "After the kill.")
        assert second.told("user_message_chunk") == []


async def test_an_editor_that_closes_its_end_leaves_the_turn_to_the_next_process(
    schema: PublishedSchema, folders: ProjectFolders, provider: ScriptedProvider, tmp_path: Path
) -> None:
    held = asyncio.Event()
    provider.then(text("begun", hold=held))
    provider.otherwise = lambda request: text(" and done.")
    async with started(schema, folders, log=tmp_path / "log") as first:
        await first.start()
        session = await first.open(str(folders.project))
        first.begin("session/prompt", sessionId=session, prompt=GO)
        await first.until(lambda: first.text() == "begun")
        first.close()
        assert await first.ended() == 0
    assert (tmp_path / "log").read_text() == ""
    held.set()
    async with started(schema, folders) as second:
        await second.start()
        await second.ask("session/load", sessionId=session, cwd=str(folders.project), mcpServers=[])
        await second.until(lambda: second.text().endswith(" and done."))


def test_an_editor_that_no_longer_reads_ends_the_agent(folders: ProjectFolders) -> None:
    with subprocess.Popen(
        program(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folders.project,
        env={**folders.variables, "PYTHONPATH": str(ROOT / "src")},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        initialize = {"protocolVersion": 1}
        line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
        assert process.wait(10) == 0


async def test_lines_of_a_file_are_answered_and_nothing_else_is_written(
    folders: ProjectFolders, tmp_path: Path
) -> None:
    requests: list[JsonObject] = [
        {"id": 0, "method": "session/list"},
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 99}},
        {"id": 2, "method": "session/list", "params": {"cwd": "relative"}},
        {"id": 3, "method": "session/list", "params": {"cwd": 7}},
        {"id": 4, "method": "session/list"},
        {"id": 5, "method": "session/prompt", "params": {"sessionId": "ses_none", "prompt": []}},
        {"id": 6, "method": "session/load", "params": {"sessionId": "../..", "cwd": "/"}},
        {"id": 7, "method": "session/new", "params": {"cwd": "/", "mcpServers": [{"name": ""}]}},
        {"method": "session/cancel", "params": {"sessionId": "ses_none"}},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **request}) for request in requests]
    (tmp_path / "in").write_text("\n".join(["garbage", *lines]))
    with (tmp_path / "in").open() as source:
        ran = await asyncio.to_thread(
            subprocess.run,
            program(),
            stdin=source,
            capture_output=True,
            cwd=folders.project,
            env={**folders.variables, "PYTHONPATH": str(ROOT / "src")},
            timeout=20,
        )
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    codes = {answer["id"]: answer.get("error", {}).get("code") for answer in answers}
    assert codes == {
        None: -32700,
        0: -32600,
        1: None,
        2: -32602,
        3: -32602,
        4: None,
        5: -32800,
        6: -32602,
        7: -32602,
    }
    assert ran.returncode == 0


async def test_an_agent_can_be_the_client_of_a_server(
    schema: PublishedSchema, instance: Instance, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(Call("read", {"path": "notes.txt"})), text("Through the server."))
    address = f"http://127.0.0.1:{instance.api.port}"
    async with started(schema, folders, "--attach", address) as editor:
        await editor.start()
        session = await editor.open(str(folders.project))
        assert await editor.prompt(session, "go") == {"stopReason": "end_turn"}
        assert editor.text() == "Through the server."
        editor.close()
        assert await editor.ended() == 0


async def test_a_server_that_is_not_there_is_named_in_each_answer(
    schema: PublishedSchema, folders: ProjectFolders
) -> None:
    async with started(schema, folders, "--attach", "http://127.0.0.1:1") as editor:
        await editor.start()
        future = editor.begin("session/list")
        await editor.until(future.done)
        assert "server" in str(future.exception())
