"""Clients that use every public operation at once, and remember what they were promised.

Every choice is drawn from a seed; the timing is not. A client that gets no answer asks again only
where that is allowed: with the id that it gave a prompt. Nothing is checked here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from perdure.schema.codec import JsonObject
from tests.load import model
from tests.load.fleet import Fleet

SESSIONS_MAX: Final = 40
PAUSE_SECONDS_MAX: Final = 0.6


@dataclass(frozen=True, slots=True)
class Approval:
    """An answer to a permission request that the server has taken."""

    session: str
    message: str
    call: str
    reply: str


@dataclass(slots=True)
class Promises:
    """What servers have acknowledged, to any client."""

    sessions: list[str] = field(default_factory=list[str])
    receipts: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    texts: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """By prompt, everything that it may say: as it was sent, and as it was revised."""
    approvals: dict[str, Approval] = field(default_factory=dict[str, Approval])
    operations: int = 0
    prompts: int = 0


class Client:
    def __init__(self, fleet: Fleet, promises: Promises, chance: Random) -> None:
        self._fleet = fleet
        self._promises = promises
        self._chance = chance
        self._operations: tuple[tuple[Callable[[str], Awaitable[None]], int], ...] = (
            (self._prompt, 12),
            (self._answer_permissions, 8),
            (self._interrupt, 1),
            (self._revise, 2),
            (self._cancel, 1),
            (self._reorder, 1),
            (self._revert, 1),
            (self._fork, 1),
            (self._compact, 1),
        )

    async def live(self, over: asyncio.Event) -> None:
        operations, weights = zip(*self._operations, strict=True)
        while not over.is_set():
            (operation,) = self._chance.choices(operations, weights)
            await operation(self._chance.choice(self._promises.sessions))
            self._promises.operations += 1
            await asyncio.sleep(self._chance.uniform(0, PAUSE_SECONDS_MAX))

    async def _prompt(self, session: str) -> None:
        self._promises.prompts += 1
        number = self._promises.prompts
        message_id = f"msg_load_{number}"
        said = f"{self._chance.choice(model.KINDS)} {number}"
        self._promises.texts[message_id] = {said}
        body: JsonObject = {
            "id": message_id,
            "prompt": {"text": said},
            "delivery": self._chance.choice(("steer", "queue")),
            "resume": self._chance.random() < 0.9,
        }
        path = f"/api/session/{session}/prompt"
        answer = await self._fleet.call("POST", path, body, patient=True)
        assert answer is not None
        if answer.status == 200:
            self._promises.receipts[message_id] = answer.json["data"]
        elif answer.status != 429:
            self._fleet.trouble.append(f"a prompt got {answer.status}: {answer.body[:300]!r}")

    async def _answer_permissions(self, session: str) -> None:
        """Of all Sessions, because most have none."""
        answer = await self._fleet.call("GET", "/api/permission/request")
        for request in answer.json["data"] if answer is not None and answer.status == 200 else ():
            await answer_permission(self._fleet, self._promises, request, self._chance)

    async def _interrupt(self, session: str) -> None:
        await self._fleet.call("POST", f"/api/session/{session}/interrupt", {})

    async def _revise(self, session: str) -> None:
        for pending in await self._pending(session):
            self._promises.prompts += 1
            said = f"{self._chance.choice(model.KINDS)} {self._promises.prompts}"
            self._promises.texts.setdefault(pending, set()).add(said)
            path = f"/api/session/{session}/inbox/{pending}"
            await self._fleet.call("PATCH", path, {"prompt": {"text": said}})
            return

    async def _cancel(self, session: str) -> None:
        for pending in (await self._pending(session))[-1:]:
            await self._fleet.call("DELETE", f"/api/session/{session}/inbox/{pending}")

    async def _reorder(self, session: str) -> None:
        pending = await self._pending(session)
        self._chance.shuffle(pending)
        path = f"/api/session/{session}/inbox/order"
        await self._fleet.call("POST", path, {"messageIDs": pending})

    async def _revert(self, session: str) -> None:
        answer = await self._fleet.call("GET", f"/api/session/{session}/message?limit=20")
        if answer is None or answer.status != 200:
            return
        prompts = [each["id"] for each in answer.json["data"] if each["type"] == "user"]
        if not prompts:
            return
        path = f"/api/session/{session}/revert"
        body = {"messageID": self._chance.choice(prompts[:3])}
        staged = await self._fleet.call("POST", f"{path}/stage", body)
        if staged is not None and staged.status == 200:
            ends = self._chance.choice(("commit", "clear"))
            await self._fleet.call("POST", f"{path}/{ends}", {})

    async def _fork(self, session: str) -> None:
        if len(self._promises.sessions) >= SESSIONS_MAX:
            return
        answer = await self._fleet.call("POST", f"/api/session/{session}/fork", {})
        if answer is not None and answer.status == 200:
            self._promises.sessions.append(answer.json["data"]["id"])

    async def _compact(self, session: str) -> None:
        await self._fleet.call("POST", f"/api/session/{session}/compact", {})

    async def _pending(self, session: str) -> list[str]:
        answer = await self._fleet.call("GET", f"/api/session/{session}/inbox")
        if answer is None or answer.status != 200:
            return []
        return [pending["id"] for pending in answer.json["data"]]


async def answer_permission(
    fleet: Fleet, promises: Promises, request: JsonObject, chance: Random
) -> None:
    reply = chance.choice(("once", "once", "reject"))
    path = f"/api/session/{request['sessionID']}/permission/{request['id']}/reply"
    answer = await fleet.call("POST", path, {"reply": reply})
    source = request.get("source")
    if answer is not None and answer.status == 204 and source is not None:
        promises.approvals[request["id"]] = Approval(
            session=request["sessionID"],
            message=source["messageID"],
            call=source["callID"],
            reply=reply,
        )
