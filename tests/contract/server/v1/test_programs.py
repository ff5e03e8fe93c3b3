"""V1: the programs of a directory that clients see, MCP servers and language servers."""

import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, open_backend
from tests.contract.server.v1 import v1_schema
from tests.support import language_server
from tests.support.authorization_server import authorization_server, browse
from tests.support.mcp import scripted_server
from tests.support.mcp.protected_server import protected_server
from tests.support.raw_http import call
from tests.support.scripted_provider import Call, calls, text


def scripted(mode: str, journal: Path) -> JsonObject:
    return {
        "type": "local",
        "command": [sys.executable, scripted_server.__file__, mode, str(journal)],
    }


async def test_mcp_servers_are_shown_and_connected(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    servers = {
        "good": scripted("sound", journal),
        "dead": scripted("dead", journal),
        "off": {**scripted("sound", journal), "enabled": False},
    }
    async with open_backend(tmp_path, mcp=servers) as backend, backend.port() as port:

        async def status() -> JsonObject:
            shown = (await call(port, "GET", "/mcp")).json()
            assert v1_schema.faults("GET /mcp", shown) == []
            return shown

        before = await status()
        assert before == {name: {"status": "disabled"} for name in servers}
        assert not journal.exists(), "looking started a server"
        assert (await call(port, "POST", "/mcp/good/connect")).json() is True
        assert (await call(port, "POST", "/mcp/dead/connect")).json() is False
        after = await status()
        assert (after["good"], after["off"]) == ({"status": "connected"}, {"status": "disabled"})
        assert after["dead"]["status"] == "failed"
        assert after["dead"]["error"].startswith("it ended")
        refused = await call(port, "POST", "/mcp/off/connect")
        assert (refused.status, refused.json()["name"]) == (400, "BadRequest")
        program = await call(port, "POST", "/mcp/good/auth")
        assert (program.status, program.json()["name"]) == (400, "BadRequest")


async def test_an_mcp_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with open_backend(tmp_path) as backend, backend.port() as port:
        assert (await call(port, "GET", "/mcp")).json() == {}
        for method, path, body in (
            ("POST", "/mcp/none/connect", None),
            ("POST", "/mcp/none/auth", None),
            ("DELETE", "/mcp/none/auth", None),
            ("POST", "/mcp/none/auth/callback", b'{"code":"x"}'),
        ):
            answer = await call(port, method, path, body)
            told = {"_tag": "McpServerNotFoundError", "name": "none"}
            assert answer.status == 404
            assert told.items() <= answer.json().items(), path


async def test_a_login_to_an_mcp_server_is_made_by_v1(tmp_path: Path) -> None:
    async with authorization_server() as logins, protected_server(logins) as server:
        entry = {"type": "remote", "url": server.url}
        async with open_backend(tmp_path, mcp={"it": entry}) as backend, backend.port() as port:
            assert (await call(port, "POST", "/mcp/it/connect")).json() is False
            assert (await call(port, "GET", "/mcp")).json() == {"it": {"status": "needs_auth"}}
            early = await call(port, "POST", "/mcp/it/auth/callback", b'{"code":"x"}')
            assert early.status == 400
            begun = (await call(port, "POST", "/mcp/it/auth")).json()
            assert v1_schema.faults("POST /mcp/{name}/auth", begun) == []
            _, redirect = logins.grant(begun["authorizationUrl"])
            given = parse_qs(urlsplit(redirect).query)
            assert given["state"] == [begun["oauthState"]]
            assert (await browse(redirect))[0] == 200
            assert (await call(port, "POST", "/mcp/it/connect")).json() is True
            left = (await call(port, "DELETE", "/mcp/it/auth")).json()
            assert left == {"success": True}


async def test_symbols_are_those_of_running_language_servers(tmp_path: Path) -> None:
    command = [sys.executable, language_server.__file__, "sound", str(tmp_path / "journal")]
    settings: JsonObject = {
        "lsp": {"scripted": {"command": command, "extensions": ["txt"]}},
        "permissions": [
            {"action": "*", "resource": "*", "effect": "allow"},
            {"action": "read", "resource": "secret.txt", "effect": "deny"},
        ],
    }
    async with open_backend(tmp_path, **settings) as backend, backend.port() as port:
        none_runs = (await call(port, "GET", "/find/symbol?query=wanted")).json()
        assert none_runs == []
        write = Call("write", {"path": "a.txt", "content": "fine\n"})
        backend.provider.then(calls(write), text("Done."))
        body = codec.encode({"parts": [{"type": "text", "text": "write"}]})
        await call(port, "POST", f"/session/{SESSION}/message", body)
        found = (await call(port, "GET", "/find/symbol?query=wanted")).json()
        assert v1_schema.faults("GET /find/symbol", found) == []
        place = {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}}
        uri = (backend.folders.project / "a.txt").as_uri()
        # Neither what a rule denies to show, nor what is outside of the directory.
        assert found == [{"name": "wanted", "kind": 12, "location": {"uri": uri, "range": place}}]
        running = (await call(port, "GET", "/lsp")).json()
        assert [each["status"] for each in running] == ["connected"]
