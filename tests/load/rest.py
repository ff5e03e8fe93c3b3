"""Brings a fleet to rest after a load: people answer, decide, and let pending prompts run."""

import asyncio
from random import Random
from typing import Final

from tests.load import clients, verdict
from tests.load.clients import Promises
from tests.load.fleet import Fleet

LOOK_SECONDS: Final = 0.2


async def come_to_rest(fleet: Fleet, promises: Promises, *, seconds_max: float) -> list[str]:
    """What still is not at rest when the time is up; nothing if everything is."""
    chance, busy = Random(0), ["nothing was looked at"]
    try:
        async with asyncio.timeout(seconds_max):
            while busy:
                await _settle(fleet, promises, chance)
                busy = await find_busy(fleet)
                if busy:
                    await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        pass
    return busy


async def find_busy(fleet: Fleet) -> list[str]:
    """What is active, pending, undecided or running, on any server."""
    busy: list[str] = []
    for server in fleet.servers:
        busy += [
            f"{each} is active" for each in (await server.api.get("/api/session/active"))["data"]
        ]
        for kind in ("permission", "question"):
            waiting = (await server.api.get(f"/api/{kind}/request"))["data"]
            busy += [f"{each['id']} waits for a person" for each in waiting]
    for session in await verdict.list_sessions(fleet):
        path = f"/api/session/{session}"
        pending = (await fleet.read(f"{path}/inbox"))["data"]
        busy += [f"{each['id']} of {session} is pending" for each in pending]
        if (await fleet.read(f"{path}/recovery"))["data"]["waiting"]:
            busy.append(f"{session} waits for a decision")
        jobs = (await fleet.read(f"{path}/job"))["data"]
        busy += [f"{each['id']} of {session} runs" for each in jobs if each["state"] == "running"]
    return busy


async def _settle(fleet: Fleet, promises: Promises, chance: Random) -> None:
    requests = (await fleet.read("/api/permission/request"))["data"]
    for request in requests:
        await clients.answer_permission(fleet, promises, request, chance)
    for session in await verdict.list_sessions(fleet):
        path = f"/api/session/{session}"
        if "revert" in (await fleet.read(path))["data"]:
            await fleet.call("POST", f"{path}/revert/clear", {})
        if (await fleet.read(f"{path}/recovery"))["data"]["waiting"]:
            # Nothing is sent twice: a person gives up what may have been sent.
            await fleet.call("POST", f"{path}/recovery", {"decision": "abandon"})
        if (await fleet.read(f"{path}/inbox"))["data"]:
            await fleet.call("POST", f"{path}/resume", {})
