"""Answers permission requests and questions of a run one after the other, while its events go on.

Requests of subagents are answered too. A request that another client answers meanwhile is
withdrawn, also from the screen.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, cast

from perdure.cli import terminal
from perdure.cli.runs.output import HeldOutput
from perdure.client import DeclaredError, WireClient
from perdure.schema.codec import JsonObject

ASKED: Final = frozenset({"permission.v2.asked", "question.v2.asked"})
SETTLED: Final = frozenset({"permission.v2.replied", "question.v2.replied", "question.v2.rejected"})
_DEPTH_MAX: Final = 16

Answer = Callable[[JsonObject, WireClient], Awaitable[None]]
"""Answers the permission request or the question that the event announces."""


class RequestQueue:
    """The requests of a Session and its subagents that wait for an answer, in order."""

    def __init__(
        self,
        client: WireClient,
        output: HeldOutput,
        *,
        session_id: str,
        answers: dict[str, Answer],
    ) -> None:
        self._client = client
        self._output = output
        self._session_id = session_id
        self._answers = answers
        self._waiting: dict[str, JsonObject] = {}
        """By the id of the request. The first one is being answered."""
        self._known: set[str] = set()
        self._arrived = asyncio.Event()
        self._answering: asyncio.Task[None] | None = None
        self._relatives: dict[str, bool] = {session_id: True}
        """Whether a Session is the followed one or below it."""

    async def note(self, event: JsonObject) -> None:
        """Take up a request of this Session or of a subagent, or withdraw one that is answered."""
        data = cast("JsonObject", event["data"])
        if event["type"] in SETTLED:
            self._withdraw(data["requestID"])
        elif event["type"] in ASKED and await self._is_new(data):
            self._known.add(data["id"])
            self._waiting[data["id"]] = event
            self._arrived.set()

    async def load_pending(self) -> None:
        """Take up what an earlier process asked and left waiting."""
        sessions = self._client.sessions
        for request in await sessions.permissions.list(self._session_id):
            await self.note({"type": "permission.v2.asked", "data": cast("JsonObject", request)})
        for question in await sessions.questions.list(self._session_id):
            await self.note({"type": "question.v2.asked", "data": cast("JsonObject", question)})

    async def run(self) -> None:
        """Answer requests in the order in which they came, until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                request_id, event = next(iter(self._waiting.items()))
                await self._answer(event)
                self._waiting.pop(request_id, None)

    async def _answer(self, event: JsonObject) -> None:
        self._output.hold()
        try:
            await self._introduce(event)
            answering = self._answers[event["type"]](event, self._client)
            self._answering = asyncio.create_task(_await(answering))
            try:
                await asyncio.wait([self._answering])
            finally:
                self._answering.cancel()
            if self._answering.cancelled():
                terminal.print_note("\nAnother client has answered, or the request expired.\n")
            else:
                # Raises what ended it.
                self._answering.result()
        finally:
            self._answering = None
            self._output.release()

    async def _introduce(self, event: JsonObject) -> None:
        """Name the subagent whose request it is."""
        asking = event["data"]["sessionID"]
        if asking != self._session_id:
            session = await self._client.sessions.get(asking)
            agent = session.get("agent", "subagent")
            title = terminal.one_line(f"{agent}: {session['title']}")
            terminal.print_note(f"A subagent asks ({title}):\n")

    def _withdraw(self, request_id: str) -> None:
        if request_id not in self._waiting:
            return
        if next(iter(self._waiting)) != request_id:
            del self._waiting[request_id]
        elif self._answering is not None and terminal.is_asking():
            # Otherwise it is the answer that was typed here, on its way.
            self._answering.cancel()

    async def _is_new(self, request: JsonObject) -> bool:
        return request["id"] not in self._known and await self._is_below(request["sessionID"])

    async def _is_below(self, session_id: str) -> bool:
        """Whether a Session is the followed one, or a subagent below it."""
        path: list[str] = []
        current: str | None = session_id
        while current is not None and current not in self._relatives and len(path) < _DEPTH_MAX:
            path.append(current)
            current = await self._find_parent(current)
        found = current is not None and self._relatives.get(current, False)
        self._relatives.update(dict.fromkeys(path, found))
        return found

    async def _find_parent(self, session_id: str) -> str | None:
        try:
            return (await self._client.sessions.get(session_id)).get("parentID")
        except DeclaredError:
            return None


async def _await(work: Awaitable[None]) -> None:
    await work
