"""Answers that were recorded as text: credentials, pages of other sites, headers, WebSockets.

One runtime is behind two servers, as two were recorded: one that asks for a password, and one that
does not. Both list the pages that the recorded one allowed.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace as replaced

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.server.app import make_app
from perdure.server.settings import ServerSettings
from tests.contract.recorded import answers
from tests.contract.recorded.answers import AUTH_CORS, MISC_HTTP, Sent
from tests.contract.recorded.deviations import ANSWERS, SOCKETS, check_reasons
from tests.contract.recorded.stage import recorded, serving
from tests.contract.server.fake_runtime import listening
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import Instance
from tests.support.scripted_provider import ScriptedProvider, scripted_provider
from tests.support.websocket import BINARY, TEXT, RefusedUpgradeError, WebSocket, connected

ECHO: Final[JsonObject] = {
    "command": "/bin/sh",
    "args": ["-c", 'while read -r line; do echo "<$line>"; done'],
}
PRINTED: Final = "hello\r\n<hello>\r\n"
KINDS: Final[Mapping[int, str]] = {TEXT: "text", BINARY: "cursor"}


@dataclass(frozen=True, slots=True)
class Servers:
    open: Api
    guarded: Api
    gone: str
    """A Session whose directory was removed."""

    async def differences(self, name: str, sent: Sent, wanted: JsonObject) -> list[str]:
        api = self.guarded if sent.guarded else self.open
        sent = replace(sent, path=sent.path.replace("{gone}", self.gone))
        ours = await answers.answer(api, sent, wanted)
        return [f"{name}: {difference}" for difference in answers.differences(wanted, ours)]


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
async def instance(tmp_path: Path, provider: ScriptedProvider) -> AsyncGenerator[Instance]:
    async with serving(tmp_path, provider) as opened:
        yield opened


@requirement("S117")
async def test_credentials_and_pages_are_answered_as_recorded(instance: Instance) -> None:
    async with servers(instance) as both:
        found = [
            difference
            for name, (wanted,) in recorded("auth_cors").items()
            for difference in await both.differences(f"auth_cors: {name}", AUTH_CORS[name], wanted)
        ]
    check_reasons("auth_cors", found, ANSWERS)


@requirement("S117")
async def test_odd_requests_are_answered_as_recorded(instance: Instance) -> None:
    async with servers(instance) as both:
        found = [
            difference
            for name, rows in recorded("misc_http").items()
            for sent, wanted in zip(MISC_HTTP[name], rows, strict=True)
            for difference in await both.differences(f"misc_http: {name}", sent, wanted)
        ]
    check_reasons("misc_http", found, ANSWERS)


def test_every_recorded_answer_is_asked_for_again() -> None:
    assert set(recorded("auth_cors")) == set(AUTH_CORS)
    assert set(recorded("misc_http")) == set(MISC_HTTP)


async def test_a_terminal_is_connected_to_as_recorded(instance: Instance) -> None:
    api, wanted = instance.api, recorded("pty_ws")
    terminal = f"/api/pty/{(await api.post('/api/pty', ECHO))['data']['id']}"
    path = f"{terminal}/connect"
    evil = await met(api, path, {"origin": "https://evil.com"})
    async with connected(api.port, path) as socket:
        before = await kinds(socket, 0)
        await socket.say("hello\n")
        assert await socket.until("<hello>\r\n") == PRINTED
    # Whoever is let in is told in the order in which the other site's page was.
    assert [*before, "text"] == wanted["evil_origin_no_ticket"]["frames"]
    ticket = (await api.post(f"{terminal}/connect-token"))["data"]["ticket"]
    ours = {
        "evil_origin_no_ticket": evil,
        "no_origin_cursor0": await met(api, f"{path}?cursor=0"),
        "cursor_-1": await met(api, f"{path}?cursor=-1"),
        "ticket": await met(api, f"{path}?cursor=0&ticket={ticket}"),
        "ticket_reuse": await met(api, f"{path}?cursor=0&ticket={ticket}"),
        "unknown": await met(api, "/api/pty/pty_nope/connect"),
    }
    assert ours.keys() == wanted.keys()
    found = [
        f"{case}: {row} instead of {wanted[case]}"
        for case, row in ours.items()
        if row != wanted[case]
    ]
    for case in ours:
        check_reasons(case, [line for line in found if line.startswith(f"{case}:")], SOCKETS)


@asynccontextmanager
async def servers(instance: Instance) -> AsyncGenerator[Servers]:
    offered = instance.runtime
    plain = ServerSettings(
        default_directory=str(instance.place.project),
        cursor_key=b"k" * 32,
        allowed_origins=answers.ORIGINS,
    )
    asking = replaced(plain, username=answers.USERNAME, password=answers.PASSWORD)
    async with (
        listening(make_app(offered, plain)) as (_, port),
        listening(make_app(offered, asking)) as (_, guarded),
    ):
        yield Servers(Api(port), Api(guarded), await left_behind(instance))


async def left_behind(instance: Instance) -> str:
    directory = instance.place.project.parent / "gone"
    directory.mkdir()
    session = await instance.api.create(location={"directory": str(directory)})
    directory.rmdir()
    return session


async def met(api: Api, path: str, headers: Mapping[str, str] | None = None) -> JsonObject:
    try:
        async with connected(api.port, path, headers) as socket:
            return {"status": 101, "frames": await kinds(socket, len(PRINTED))}
    except RefusedUpgradeError as refused:
        return {"status": refused.status, "frames": []}


async def kinds(socket: WebSocket, printed: int) -> list[str]:
    """Those of the frames up to the one with the cursor, which counts what was printed."""
    found: list[str] = []
    while True:
        kind, data = await socket.frame()
        found.append(KINDS[kind])
        if kind == BINARY:
            assert codec.decode_any(data[1:]) == {"cursor": printed}
            return found
