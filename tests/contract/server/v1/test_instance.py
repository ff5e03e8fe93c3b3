"""V1: terminals by WebSocket, requests to the terminal client, and what applies in a directory."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure.protocol.v1 import tui
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend, open_backend
from tests.contract.server.v1.test_replay import read_until
from tests.contract.server.v1.test_turn import following
from tests.support.raw_http import call
from tests.support.websocket import RefusedUpgradeError, connected

TOLD: Mapping[str, tuple[JsonObject | None, str, JsonObject | None]] = {
    "/tui/append-prompt": ({"text": "hello"}, "tui.prompt.append", {"text": "hello"}),
    "/tui/execute-command": (
        {"command": "session.new"},
        "tui.command.execute",
        {"command": "session.new"},
    ),
    "/tui/show-toast": (
        {"message": "done", "variant": "info"},
        "tui.toast.show",
        {"message": "done", "variant": "info"},
    ),
    "/tui/select-session": (
        {"sessionID": SESSION},
        "tui.session.select",
        {"sessionID": SESSION},
    ),
    "/tui/publish": (
        {"type": "tui.prompt.append", "properties": {"text": "x"}},
        "tui.prompt.append",
        {"text": "x"},
    ),
    "/tui/submit-prompt": (None, "tui.command.execute", {"command": "prompt.submit"}),
    "/instance/dispose": (None, "server.instance.disposed", None),
    "/global/dispose": (None, "global.disposed", {}),
}


@pytest.mark.parametrize("path", TOLD)
async def test_what_a_program_asks_of_clients_reaches_idle_subscribers(
    path: str, backend: Backend, port: int
) -> None:
    body, kind, properties = TOLD[path]
    async with (
        asyncio.timeout(10),
        following(port, "/event") as one,
        following(port, "/global/event") as other,
    ):
        answer = await call(port, "POST", path, None if body is None else codec.encode(body))
        assert answer.json() is True
        for client in (one, other):
            told = next(each for each in await read_until(client, kind) if each["type"] == kind)
            shown = {"directory": backend.here} if properties is None else properties
            assert told["properties"] == shown


async def test_a_session_that_is_not_there_cannot_be_selected(port: int) -> None:
    answer = await call(port, "POST", "/tui/select-session", b'{"sessionID":"ses_none"}')
    assert answer.status == 404


def test_each_route_without_a_body_stands_for_a_command() -> None:
    bare = {each.operation_id for each in tui.ENDPOINTS if each.body is None}
    assert bare == set(tui.COMMANDS)


async def test_a_terminal_is_used_by_websocket(backend: Backend) -> None:
    given = backend.settings(password="correct horse")
    auth = {"authorization": "Basic b3BlbmNvZGU6Y29ycmVjdCBob3JzZQ=="}
    async with backend.port(given) as port:
        made: JsonObject = (
            await call(port, "POST", "/pty", b'{"command":"cat"}', headers=auth)
        ).json()
        path = f"/pty/{made['id']}/connect"
        token = (await call(port, "POST", f"{path}-token", None, auth)).json()["ticket"]
        async with connected(port, f"{path}?ticket={token}") as socket:
            await socket.say("typed\n")
            assert "typed" in await socket.until("typed")
        for ticket in ("", token, "wrong"):
            with pytest.raises(RefusedUpgradeError) as refused:
                async with connected(port, f"{path}?ticket={ticket}"):
                    pytest.fail("a ticket was taken twice")
            assert refused.value.status == 403


async def test_the_configuration_is_shown_without_secrets(tmp_path: Path) -> None:
    extra = {
        "commands": {"hello": {"template": "Hello $1", "description": "greets"}},
        "permissions": [{"action": "bash", "resource": "rm *", "effect": "deny"}],
        "instructions": ["RULES.md"],
        "default_agent": "brief",
    }
    async with open_backend(tmp_path, **extra) as backend, backend.port() as port:
        shown = (await call(port, "GET", "/config")).json()
        raw = (await call(port, "GET", "/config")).body
        providers = (await call(port, "GET", "/config/providers")).json()
    assert shown["model"] == "fake/fake-model"
    assert shown["default_agent"] == "brief"
    assert shown["command"]["hello"] == {"template": "Hello $1", "description": "greets"}
    assert shown["permission"]["bash"] == {"rm *": "deny"}
    assert shown["instructions"] == ["RULES.md"]
    assert list(shown["provider"]) == ["fake"]
    secret = codec.decode_any((backend.folders.project / "opencode.json").read_bytes())
    key = secret["providers"]["fake"]["request"]["body"]["apiKey"]
    assert key.encode() not in raw
    (fake,) = [each for each in providers["providers"] if each["id"] == "fake"]
    assert fake["source"] == "config"


async def test_formatters_tools_and_agents_are_those_of_the_directory(tmp_path: Path) -> None:
    formatter = {"formatter": {"tidy": {"command": ["tidy", "$FILE"], "extensions": [".py"]}}}
    async with open_backend(tmp_path, **formatter) as backend, backend.port() as port:
        formatters = (await call(port, "GET", "/formatter")).json()
        assert formatters == [{"name": "tidy", "extensions": [".py"], "enabled": True}]
        ids = (await call(port, "GET", "/experimental/tool/ids")).json()
        listed = (await call(port, "GET", "/experimental/tool?provider=fake&model=x")).json()
        assert {"bash", "edit", "read"} <= set(ids)
        assert [each["id"] for each in listed] == ids
        assert all(each["parameters"]["type"] == "object" for each in listed)
        agents = (await call(port, "GET", "/agent")).json()
        native = {each["name"]: each["native"] for each in agents}
        assert (native["build"], native["brief"]) == (True, False)
        paths = (await call(port, "GET", "/path")).json()
        assert paths["config"] == backend.folders.environment.config_dir
        assert paths["home"] == backend.folders.environment.home


async def test_all_sessions_are_listed_with_their_projects(backend: Backend, port: int) -> None:
    listed = (await call(port, "GET", "/experimental/session?limit=1")).json()
    assert len(listed) == 1
    assert listed[0]["project"] == {"id": "global", "worktree": "/"}
