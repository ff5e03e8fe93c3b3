"""The recorded live streams, made again: what was done while a client listened."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote

from tests.contract.recorded.replay import Replay
from tests.contract.recorded.stage import MODEL, RELEASED, WAITING, recorded
from tests.contract.recorded.streams import Told
from tests.support.instance import Instance
from tests.support.scripted_provider import Reply, ScriptedProvider, calls, text

Scene = Callable[[Instance, ScriptedProvider, Told], Awaitable[None]]


async def thought_and_said(instance: Instance, provider: ScriptedProvider, told: Told) -> None:
    """An answer with reasoning, and silence after it."""
    provider.then(text("Hello", " there", reasoning=("let me", " think")))
    session = await instance.api.create(model=MODEL)
    await instance.api.prompt(session, "think")
    await told.until("next.step.ended")
    for _ in range(2):
        while not (await told.next()).is_comment:
            pass


async def beside_sessions(instance: Instance, provider: ScriptedProvider, told: Told) -> None:
    """A directory is used for the first time, a terminal lives, an integration is connected."""
    api, elsewhere = instance.api, quote(str(instance.folders.project.parent / "project2"))
    await api.get(f"/api/agent?location[directory]={elsewhere}")
    body = {"command": "/bin/sh", "args": ["-c", "exit 2"]}
    terminal = f"/api/pty/{(await api.post('/api/pty', body))['data']['id']}"
    await told.until("pty.exited")
    assert (await api.call("PUT", terminal, {"title": "zz"})).status == 200
    assert (await api.call("DELETE", terminal)).status == 204
    await api.post("/api/integration/openai/connect/key", {"key": "sk-recorded"})
    await told.until("created", sessionID=await api.create())


async def people_asked(instance: Instance, provider: ScriptedProvider, told: Told) -> None:
    """All exchanges about permissions and questions; their answers are compared elsewhere."""
    replay = Replay(instance, provider)
    greeting = len(told.frames)
    for name in ("<ses1>", "<ses8>"):
        await told.until("created", sessionID=await replay.id_of(name))
    # These were there before anybody listened.
    del told.frames[greeting:]
    for exchange in recorded("permission_question"):
        await replay.differences(exchange)
    await told.until("created", sessionID=await instance.api.create())
    told.frames.pop()


async def three_at_once(instance: Instance, provider: ScriptedProvider, told: Told) -> None:
    """A tool that takes its time, a slow answer meanwhile, and a prompt that only waits."""
    api, hold = instance.api, asyncio.Event()
    provider.then(calls(WAITING))
    await api.prompt(await api.create(model=MODEL), "use a tool")
    await told.until("next.tool.called")
    provider.then(Reply(pieces=(text("slow").pieces[0], hold, *text(" answer").pieces)))
    slow = await api.create(model=MODEL)
    await api.prompt(slow, "be slow")
    await told.until("next.text.delta", sessionID=slow)
    await api.prompt(await api.create(model=MODEL), "wait", resume=False)
    await told.until("next.prompt.admitted")
    hold.set()
    await told.until("next.step.ended", sessionID=slow)
    (instance.folders.project / RELEASED).touch()
    await told.until("next.step.ended")
    await told.until("next.step.ended")


SCENES: Final[Mapping[str, Scene]] = {
    "live1": thought_and_said,
    "live_misc": beside_sessions,
    "live_heartbeat": three_at_once,
    "perm_question": people_asked,
}
