"""Perdure inside a program that runs on uvloop, whose transports are not asyncio's classes."""

from pathlib import Path

import uvloop

from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, calls, scripted_provider, text


async def serve_a_turn(root: Path) -> None:
    """One turn with a command and a background job, over every kind of transport."""
    async with scripted_provider() as provider:
        provider.then(
            calls(
                Call("bash", {"command": "echo on uvloop"}),
                Call("bash", {"command": "sleep 60", "timeout": 100}),
            ),
            text("done"),
        )
        async with running(make_folders(root, provider)) as server:
            session = await server.api.create()
            async with server.api.events(session) as stream:
                await server.api.prompt(session, "go")
                await stream.until("step.ended")
            await server.api.wait(session)
            messages = await server.api.messages(session)
            assert "on uvloop" in str(messages)
            assert messages[-1]["content"][-1]["text"] == "done"


def test_a_server_runs_on_uvloop(tmp_path: Path) -> None:
    uvloop.run(serve_a_turn(tmp_path))
