"""MCP servers as clients see and restart them."""

from pathlib import Path

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.acceptance.mcp.mcp_project import ALLOWED, heard, local
from tests.support.instance import running
from tests.support.project import distrust, make_folders
from tests.support.scripted_provider import ScriptedProvider, text


async def test_servers_are_listed_with_their_states(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    distrust(folders)
    given: JsonObject = codec.decode_any(folders.user_configuration.read_bytes())
    servers = {
        "it": local(tmp_path / "it"),
        "off": local(tmp_path / "off", enabled=False),
        "bad": {"type": "local", "command": ["/does/not/exist"]},
    }
    folders.configure_user(**{**given, "mcp": servers, **ALLOWED})
    asked: JsonObject = {"mcp": {"theirs": local(tmp_path / "theirs")}}
    (folders.project / "opencode.json").write_bytes(codec.encode(asked))
    async with running(folders) as instance:
        before = (await instance.api.get("/api/mcp"))["data"]
        assert {one["name"]: one["status"] for one in before} == {
            "bad": "waiting",
            "it": "waiting",
            "off": "disabled",
            "theirs": "untrusted",
        }
        assert not (tmp_path / "it").exists()
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
        after = {one["name"]: one for one in (await instance.api.get("/api/mcp"))["data"]}
    assert after["it"]["status"] == "connected"
    assert after["it"]["tools"] == ["it_fail", "it_picture", "it_say"]
    assert after["bad"]["status"] == "failed"
    assert "/does/not/exist" in after["bad"]["error"]
    assert "perdure trust" in after["theirs"]["error"]
    assert not (tmp_path / "off").exists()
    assert not (tmp_path / "theirs").exists()


async def test_a_restart_starts_it_again_and_is_told(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    folders.configure_user(mcp={"a b": local(tmp_path / "it")}, **ALLOWED)
    async with running(folders) as instance:
        api = instance.api
        async with api.stream("/api/event") as live:
            answer = await api.post("/api/mcp/a%20b/restart")
            assert answer["data"]["status"] == "starting"
            while (await api.get("/api/mcp"))["data"][0]["status"] != "connected":
                await live.until("mcp.changed")
            await api.post("/api/mcp/a%20b/restart")
            while len([note for note in heard(tmp_path / "it") if "pid" in note]) < 2:
                await live.until("mcp.changed")
        missing = await api.call("POST", "/api/mcp/nothing/restart", {})
        assert (missing.status, missing.tag) == (404, "McpServerNotFoundError")
        no_login = await api.call("POST", "/api/mcp/a%20b/login", {})
        assert no_login.status == 400
