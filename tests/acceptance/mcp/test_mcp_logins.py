"""Logins to remote MCP servers: found by their metadata, made in a browser, renewed and removed."""

import socket
from base64 import b64encode
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from perdure.schema.codec import JsonObject
from tests.acceptance.mcp.mcp_project import ALLOWED, offered_by, results
from tests.support.api import Api
from tests.support.authorization_server import CLIENT, authorization_server, browse
from tests.support.instance import running
from tests.support.mcp.protected_server import protected_server
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def status(api: Api) -> str:
    return (await api.get("/api/mcp"))["data"][0]["status"]


async def test_a_login_is_begun_completed_used_and_removed(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with authorization_server() as logins, protected_server(logins) as server:
        folders = make_folders(tmp_path, provider)
        entry: JsonObject = {
            "type": "remote",
            "url": server.url,
            "oauth": {"callback_port": free_port()},
        }
        folders.configure_user(mcp={"it": entry}, **ALLOWED)
        async with running(folders) as instance:
            api = instance.api
            session = await api.create()
            provider.then(text("1"))
            await api.ask(session, "first")
            assert offered_by(provider.requests[-1], "it") == []
            assert await status(api) == "needs_auth"

            attempt = (await api.post("/api/mcp/it/login"))["data"]
            assert server.registered[0]["token_endpoint_auth_method"] == "none"
            _, redirect = logins.grant(attempt["url"])
            page: str = attempt["url"]
            assert parse_qs(urlsplit(page).query)["resource"] == [server.url]
            async with api.stream("/api/event") as live:
                page_status, _ = await browse(redirect)
                assert page_status == 200
                while await status(api) != "connected":
                    await live.until("mcp.changed")
            provider.then(calls(Call("it_say", {})), text("2"))
            await api.ask(session, "second")
            assert results(provider.requests[-1]) == ["said"]

            # A token that is refused later is not the end: the next start brings a login again.
            server.revoked.update(logins.issued)
            provider.then(calls(Call("it_say", {})), text("3"))
            await api.ask(session, "third")
            assert "login" in results(provider.requests[-1])[-1]

            removed = await api.call("POST", "/api/mcp/it/logout", {})
            assert removed.status == 204
            server.seen.clear()
            async with api.stream("/api/event") as live:
                await api.post("/api/mcp/it/restart")
                while await status(api) != "needs_auth":
                    await live.until("mcp.changed")
            assert set(server.seen) == {""}
        leaked = [secret for secret in logins.issued if secret in str(provider.requests)]
        assert leaked == []


async def test_a_login_is_kept_over_a_restart_and_sent_to_its_origin_alone(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with (
        authorization_server() as logins,
        protected_server(logins) as server,
        protected_server(logins) as another,
    ):
        folders = make_folders(tmp_path, provider)
        servers = {
            "it": {"type": "remote", "url": server.url, "oauth": {"callback_port": free_port()}},
            "other": {"type": "remote", "url": another.url},
        }
        folders.configure_user(mcp=servers, **ALLOWED)
        async with running(folders) as instance:
            attempt = (await instance.api.post("/api/mcp/it/login"))["data"]
            await browse(logins.grant(attempt["url"])[1])
        async with running(folders) as instance:
            session = await instance.api.create()
            provider.then(calls(Call("it_say", {})), text("done"))
            await instance.api.ask(session, "say it")
        assert results(provider.requests[-1]) == ["said"]
        assert set(another.seen) == {""}


@pytest.mark.parametrize("place", ["header", "body"])
async def test_the_secret_of_a_registered_client_goes_to_its_token_server_alone(
    place: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    secret = "of the client/&%+"
    async with authorization_server() as logins, protected_server(logins) as server:
        if place == "body":
            server.secret_ways = ["client_secret_post"]
        folders = make_folders(tmp_path, provider)
        oauth = {
            "client_id": CLIENT,
            "client_secret": secret,
            "callback_port": free_port(),
        }
        entry: JsonObject = {"type": "remote", "url": server.url, "oauth": oauth}
        folders.configure_user(mcp={"it": entry}, **ALLOWED)
        async with running(folders) as instance:
            attempt = (await instance.api.post("/api/mcp/it/login"))["data"]
            assert secret not in attempt["url"]
            await browse(logins.grant(attempt["url"])[1])
            session = await instance.api.create()
            provider.then(calls(Call("it_say", {})), text("done"))
            await instance.api.ask(session, "say it")
        assert results(provider.requests[-1]) == ["said"]
        assert server.registered == []
        (asked,) = logins.asked
        (headers,) = logins.headers
        if place == "body":
            assert (asked["client_secret"], headers.get("authorization")) == (secret, None)
        else:
            basic = b64encode(f"{CLIENT}:of+the+client%2F%26%25%2B".encode()).decode()
            assert (asked.get("client_secret"), headers["authorization"]) == (
                None,
                f"Basic {basic}",
            )
        assert not any(secret in seen for seen in server.seen)


async def test_a_server_without_a_login_says_so(tmp_path: Path, provider: ScriptedProvider) -> None:
    folders = make_folders(tmp_path, provider)
    servers = {
        "off": {"type": "remote", "url": "http://127.0.0.1:9/mcp", "oauth": False},
        "gone": {"type": "remote", "url": "http://127.0.0.1:9/mcp"},
        "plain": {"type": "remote", "url": "http://a.example/mcp"},
        "secret": {
            "type": "remote",
            "url": "http://127.0.0.1:9/mcp",
            "oauth": {"client_secret": "b"},
        },
    }
    folders.configure_user(mcp=servers)
    async with running(folders) as instance:
        for name, reason in (
            ("off", "`oauth: false`"),
            ("gone", "cannot be reached"),
            ("plain", "neither https nor on this machine"),
            ("secret", "client_secret"),
        ):
            refused = await instance.api.call("POST", f"/api/mcp/{name}/login", {})
            assert refused.status == 400
            assert reason in refused.json["message"]
