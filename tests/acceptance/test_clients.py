"""One story, told over a socket and in memory, with plain and with decoded values."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from perdure.client import ClientError, DeclaredError, PerdureClient
from perdure.client.typed import TypedPerdureClient
from perdure.schema.errors import DomainError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.model import ModelRef
from tests.contract.client.hosts import (
    DEMO,
    PATIENCE_SECONDS,
    in_memory,
    over_network,
    typed_in_memory,
    typed_over_network,
)
from tests.requirements import requirement


class Teller(Protocol):
    """What the story needs of a client, in words that both clients can say."""

    async def create(self, session_id: str) -> str: ...
    async def prompt(self, session_id: str, text: str, message_id: str) -> int: ...
    async def wait(self, session_id: str) -> None: ...
    async def kinds(self, session_id: str) -> list[str]: ...
    async def walk(self, session_id: str) -> list[str]: ...
    async def history(self, session_id: str) -> list[tuple[int, str]]: ...
    async def followed(self, session_id: str, after: int, count: int) -> list[tuple[int, str]]: ...
    async def failure(self, session_id: str, message_id: str) -> str: ...


class Plain:
    def __init__(self, client: PerdureClient) -> None:
        self._sessions = client.sessions

    async def create(self, session_id: str) -> str:
        return (await self._sessions.create(id=session_id, model=DEMO))["id"]

    async def prompt(self, session_id: str, text: str, message_id: str) -> int:
        receipt = await self._sessions.prompt(session_id, text=text, id=message_id)
        return receipt["admittedSeq"]

    async def wait(self, session_id: str) -> None:
        await self._sessions.wait(session_id)

    async def kinds(self, session_id: str) -> list[str]:
        page = await self._sessions.messages(session_id, order="asc")
        return [message["type"] for message in page.items]

    async def walk(self, session_id: str) -> list[str]:
        page = await self._sessions.messages(session_id, order="asc", limit=1)
        found = [*page.items]
        while page.next is not None:
            page = await self._sessions.messages(session_id, cursor=page.next)
            found += page.items
        return [message["type"] for message in found]

    async def history(self, session_id: str) -> list[tuple[int, str]]:
        found = await self._sessions.history(session_id, limit=100)
        return [(event["durable"]["seq"], event["type"]) for event in found.items]

    async def followed(self, session_id: str, after: int, count: int) -> list[tuple[int, str]]:
        async with aclosing(self._sessions.events(session_id, after=after)) as events:
            found = [await anext(events) for _ in range(count)]
        return [(event["durable"]["seq"], event["type"]) for event in found]

    async def failure(self, session_id: str, message_id: str) -> str:
        try:
            await self._sessions.message(session_id, message_id)
        except DeclaredError as error:
            return error.tag
        raise AssertionError("it was found")


class Decoded:
    def __init__(self, client: TypedPerdureClient) -> None:
        self._sessions = client.sessions

    async def create(self, session_id: str) -> str:
        demo = ModelRef(provider_id="demo", id="demo")
        return (await self._sessions.create(id=SessionID(session_id), model=demo)).id

    async def prompt(self, session_id: str, text: str, message_id: str) -> int:
        receipt = await self._sessions.prompt(
            SessionID(session_id), text=text, id=MessageID(message_id)
        )
        return receipt.admitted_seq

    async def wait(self, session_id: str) -> None:
        await self._sessions.wait(SessionID(session_id))

    async def kinds(self, session_id: str) -> list[str]:
        page = await self._sessions.messages(SessionID(session_id), order="asc")
        return [_kind(message) for message in page.items]

    async def walk(self, session_id: str) -> list[str]:
        page = await self._sessions.messages(SessionID(session_id), order="asc", limit=1)
        found = [*page.items]
        while page.next is not None:
            page = await self._sessions.messages(SessionID(session_id), cursor=page.next)
            found += page.items
        return [_kind(message) for message in found]

    async def history(self, session_id: str) -> list[tuple[int, str]]:
        found = await self._sessions.history(SessionID(session_id), limit=100)
        return [(event.durable.seq, event.type) for event in found.items]

    async def followed(self, session_id: str, after: int, count: int) -> list[tuple[int, str]]:
        stream = self._sessions.events(SessionID(session_id), after=after)
        async with aclosing(stream) as events:
            found = [await anext(events) for _ in range(count)]
        return [(event.durable.seq, event.type) for event in found]

    async def failure(self, session_id: str, message_id: str) -> str:
        try:
            await self._sessions.message(SessionID(session_id), MessageID(message_id))
        except DomainError as error:
            return error.tag
        raise AssertionError("it was found")


def _kind(message: object) -> str:
    return type(message).__name__.removesuffix("Message").lower()


@asynccontextmanager
async def teller(root: Path, way: str, values: str) -> AsyncGenerator[Teller]:
    if values == "plain":
        async with (over_network if way == "network" else in_memory)(root) as client:
            yield Plain(client)
    else:
        async with (typed_over_network if way == "network" else typed_in_memory)(root) as client:
            yield Decoded(client)


@requirement("S20", "S108", "S113", "S115", "S127", "S137", "S138")
@pytest.mark.parametrize("values", ["plain", "decoded"])
@pytest.mark.parametrize("way", ["network", "memory"])
async def test_the_same_story_over_both_transports_with_both_clients(
    tmp_path: Path, way: str, values: str
) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), teller(tmp_path, way, values) as tell:
        session_id = await tell.create("ses_story")
        assert await tell.create("ses_story") == session_id
        admitted = await tell.prompt(session_id, "list the files here", "msg_one")
        assert await tell.prompt(session_id, "list the files here", "msg_one") == admitted
        await tell.wait(session_id)
        kinds = await tell.kinds(session_id)
        assert kinds == ["user", "assistant", "assistant"]
        assert await tell.walk(session_id) == kinds
        history = await tell.history(session_id)
        assert [seq for seq, _ in history] == list(range(1, len(history) + 1))
        assert history[0] == (admitted, "session.next.prompt.admitted")
        assert await tell.followed(session_id, 2, len(history) - 2) == history[2:]
        assert await tell.failure(session_id, "msg_none") == "MessageNotFoundError"
        assert await tell.failure("ses_none", "msg_one") == "SessionNotFoundError"


@requirement("S118", "S123")
@pytest.mark.parametrize("values", ["plain", "decoded"])
async def test_a_server_that_is_not_there_fails_at_the_first_call(values: str) -> None:
    nobody = "http://127.0.0.1:1"
    client = PerdureClient(nobody) if values == "plain" else TypedPerdureClient(nobody)
    async with client:
        with pytest.raises(ClientError) as caught:
            await client.health.get()
    assert caught.value.reason == "transport"
