"""A program that asks over the network gets its answer also if the server is started anew."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import pytest

import perdure
from perdure import Answer, AnswerError
from tests.support import database_check
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, Reply, ScriptedProvider, calls, text
from tests.support.server_process import ServerProcess, server_process

BLOCKS: Final = "echo ran >> effects; while [ ! -e released ]; do sleep 0.05; done"
PATIENCE_SECONDS: Final = 40

ENDS: Final = ("kill", "stop")
MOMENTS: Final[Mapping[str, Callable[[], Reply]]] = {
    "before anything came back": lambda: Reply(pieces=(asyncio.Event(),)),
    "in the answer": lambda: text("half of it", hold=asyncio.Event()),
    "in a command": lambda: calls(Call("bash", {"command": BLOCKS})),
}
"""What the provider answers, made anew: an Event belongs to one loop."""


async def reached(moment: str, server: ServerProcess, provider: ScriptedProvider) -> None:
    """Wait until the work of the only Session is at that moment."""
    await provider.arrived(1)
    (session,) = (await server.api.get("/api/session/active"))["data"]
    if moment == "before anything came back":
        return
    async with server.api.events(session) as stream:
        await stream.until("tool.called" if moment == "in a command" else "text.started")


async def end(server: ServerProcess, how: str) -> None:
    await (server.kill() if how == "kill" else server.stop())


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_answer_that_was_asked_for_comes_from_the_next_server(
    folders: ProjectFolders, provider: ScriptedProvider, moment: str, how: str
) -> None:
    provider.then(MOMENTS[moment]())
    provider.otherwise = lambda request: text("the whole answer")
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with server_process(folders, "first") as server:
            port = server.api.port
            async with perdure.connect(f"http://127.0.0.1:{port}") as client:
                asking = asyncio.create_task(client.ask("say it"))
                await reached(moment, server, provider)
                await end(server, how)
                (folders.project / "released").touch()
                async with server_process(folders, "second", port=port) as second:
                    answer = await asking
                    assert (await second.api.get("/api/session/active"))["data"] == {}
    assert answer.text.endswith("the whole answer")
    assert len(provider.requests) == 2
    await database_check.check(folders.database)


@pytest.mark.parametrize("how", ENDS)
async def test_events_of_an_answer_are_given_across_a_restart_each_once(
    folders: ProjectFolders, provider: ScriptedProvider, how: str
) -> None:
    provider.then(MOMENTS["in a command"]())
    provider.otherwise = lambda request: text("the whole answer")
    seqs: list[int] = []
    types: list[str] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with server_process(folders, "first") as server:
            port = server.api.port
            async with perdure.connect(f"http://127.0.0.1:{port}") as client:
                session = await client.session()

                async def follow() -> None:
                    async for event in session.stream("say it"):
                        types.append(event.type)
                        if event.durable is not None:
                            seqs.append(event.durable.seq)

                following = asyncio.create_task(follow())
                await reached("in a command", server, provider)
                await end(server, how)
                (folders.project / "released").touch()
                async with server_process(folders, "second", port=port):
                    await following
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    assert types.count("session.next.step.ended") == 2


async def test_a_server_that_asks_a_person_after_a_restart_is_an_error_that_says_so(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    folders.configure_user(experimental={"recovery": "ask"})
    provider.then(MOMENTS["before anything came back"]())
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with server_process(folders, "first") as server:
            port = server.api.port
            async with perdure.connect(f"http://127.0.0.1:{port}") as client:
                asking: asyncio.Task[Answer[None]] = asyncio.create_task(client.ask("say it"))
                await reached("before anything came back", server, provider)
                await server.kill()
                async with server_process(folders, "second", port=port):
                    with pytest.raises(AnswerError, match="perdure recover"):
                        await asking
