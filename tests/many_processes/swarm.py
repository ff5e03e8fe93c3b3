"""Many servers on one data directory, clients that use any of them, and random kills and stops.

Every choice is drawn from a seed, but the timing of processes and disks is not. A client without an
answer asks another server with the same id. Nothing is checked here, except that an answer is one
of the contract.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Final

from perdure.core import limits
from perdure.schema.codec import JsonObject
from tests.support import server_process
from tests.support.api import RefusedError
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, Reply, Request, calls, text
from tests.support.server_process import ServerProcess

KILL_SECONDS: Final = (0.8, 1.8)
STOP_SECONDS: Final = (0.05, 0.6)
STOPPED_SECONDS: Final = (0.01, 0.5)
STOPPED_LONG_SECONDS: Final = (limits.BEATS_MISSED_MAX + 2.5) * limits.BEAT_SECONDS
"""Long enough to be taken for silent."""
STOPPED_LONG_SHARE: Final = 0.03
EFFECTS: Final = "effects.txt"
PEOPLE_PER_PROCESS: Final = 1
SAID_AT_ONCE_MAX: Final = 10
DECIDE_SECONDS: Final = 0.2
NO_ANSWER: Final = (OSError, RefusedError, TimeoutError, asyncio.IncompleteReadError)
"""What a caller sees of a process that is killed meanwhile."""


@dataclass(slots=True)
class Swarm:
    folders: ProjectFolders
    chance: Random
    processes: int
    pause_seconds: float
    """For how long a person is silent at most, after having said much."""
    sessions: list[str] = field(default_factory=list[str])
    servers: list[ServerProcess] = field(default_factory=list[ServerProcess])
    receipts: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    statuses: Counter[int] = field(default_factory=Counter[int])
    trouble: list[str] = field(default_factory=list[str])
    logs: list[ServerProcess] = field(default_factory=list[ServerProcess])
    kills: int = 0
    stops: int = 0
    unanswered: int = 0
    """How often a client had to ask again, because there was no answer."""
    _sent: int = 0

    async def start(self, *, sessions: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.processes):
                group.create_task(self._add())
        for _ in range(sessions):
            self.sessions.append(await self._some().api.create())

    async def live(self, seconds: float, *, stops: bool = False) -> None:
        """Send prompts for this long, and kill or stop processes; until all have a receipt."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(self.processes * PEOPLE_PER_PROCESS):
                group.create_task(self._talk(over))
            group.create_task(self._stop(over) if stops else self._kill(over))
            await asyncio.sleep(seconds)
            over.set()

    async def rest(self, seconds_max: float) -> None:
        """Until everything that was said has been run, and nothing runs anywhere."""
        async with asyncio.timeout(seconds_max), asyncio.TaskGroup() as group:
            deciding = group.create_task(self._decide())
            async with asyncio.TaskGroup() as resting:
                for session in self.sessions:
                    resting.create_task(self._rested(session))
            deciding.cancel()

    async def stop(self) -> None:
        for server in self.servers:
            await server.stop()

    # ---- people ---------------------------------------------------------------------------------

    async def _talk(self, over: asyncio.Event) -> None:
        while not over.is_set():
            for _ in range(self.chance.randint(1, SAID_AT_ONCE_MAX)):
                self._sent += 1
                number = self._sent
                await self._say(f"msg_said_{number}", self.chance.choice(self.sessions), number)
            await asyncio.sleep(self.chance.uniform(0, self.pause_seconds))

    async def _say(self, message_id: str, session: str, number: int) -> None:
        """Until a process has answered; sometimes once more, to another process."""
        body: JsonObject = {
            "id": message_id,
            "prompt": {"text": f"say <{number}>"},
            "delivery": self.chance.choice(("steer", "queue")),
        }
        path = f"/api/session/{session}/prompt"
        asked = 1 if self.chance.random() < 0.7 else 2
        while asked:
            try:
                answer = await self._some().api.call("POST", path, body)
            except NO_ANSWER:
                self.unanswered += 1
                continue
            self.statuses[answer.status] += 1
            if answer.status == 503 and "retry-after" in answer.headers:
                await asyncio.sleep(int(answer.headers["retry-after"]))
                continue
            asked -= 1
            if answer.status != 200:
                self.trouble.append(f"{answer.status}: {answer.body[:300]!r}")
                return
            receipt = _essence(answer.json["data"])
            if self.receipts.setdefault(message_id, receipt) != receipt:
                self.trouble.append(f"{message_id} has two receipts")

    def _some(self) -> ServerProcess:
        return self.chance.choice(self.servers)

    # ---- processes ------------------------------------------------------------------------------

    async def _add(self) -> None:
        server = await server_process.start(self.folders, f"server-{len(self.logs)}")
        self.logs.append(server)
        self.servers.append(server)

    async def _kill(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await asyncio.sleep(self.chance.uniform(*KILL_SECONDS))
            victim = self._some()
            self.servers.remove(victim)
            # It asserts that the process died of the signal: a crash that was none proves nothing.
            await victim.kill()
            self.kills += 1
            await self._add()

    async def _stop(self, over: asyncio.Event) -> None:
        """Stop a process at a random moment, in the middle of whatever it does, and let it go on.

        The first stop is a long one.
        """
        while not over.is_set():
            await asyncio.sleep(self.chance.uniform(*STOP_SECONDS))
            is_long = not self.stops or self.chance.random() < STOPPED_LONG_SHARE
            seconds = STOPPED_LONG_SECONDS if is_long else self.chance.uniform(*STOPPED_SECONDS)
            with self._some().suspended():
                await asyncio.sleep(seconds)
            self.stops += 1

    async def _decide(self) -> None:
        """A person gives up what may have been sent already: nothing is sent twice."""
        while True:
            for session in self.sessions:
                path, api = f"/api/session/{session}/recovery", self._some().api
                if (await api.get(path))["data"]["waiting"]:
                    # Another process may have given it up meanwhile.
                    answer = await api.call("POST", path, {"decision": "abandon"})
                    assert answer.status in {204, 409}
            await asyncio.sleep(DECIDE_SECONDS)

    async def _rested(self, session: str) -> None:
        said = {key for key, receipt in self.receipts.items() if receipt["sessionID"] == session}
        settled = not said
        async with self._some().api.events(session) as stream:
            while said or not settled:
                event = await stream.event()
                said.discard(str(event["data"].get("messageID")) if _promotes(event) else "")
                settled = _settles(event)
        for server in self.servers:
            await server.api.wait(session)


class Model:
    """One tool call for each prompt, with an effect that can be counted, then a text."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """By prompt, how often a turn of it was begun."""

    def answer(self, request: Request) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return text("said")
        prompt = request.texts("user")[-1]
        self.asked[prompt] += 1
        marker = prompt.removeprefix("say ").strip("<>")
        return calls(Call("bash", {"command": f"echo {marker} >> {EFFECTS}"}))


def _promotes(event: JsonObject) -> bool:
    return event["type"] == "session.next.prompted"


def _settles(event: JsonObject) -> bool:
    """Whether it ends a step after which nothing follows by itself."""
    if event["type"] == "session.next.step.failed":
        return True
    return event["type"] == "session.next.step.ended" and event["data"]["finish"] != "tool-calls"


def _essence(receipt: JsonObject) -> JsonObject:
    """What stays the same in every receipt of one admission: all but the promotion."""
    return {name: value for name, value in receipt.items() if name != "promotedSeq"}
