"""The web through a whole server: the user's configuration opens it, and a key stays home."""

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host.loopback import replying, response, serving
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

KEY = "canary-8b1f4a02e9"
PAGE = response(b"<h1>Inside</h1>", headers="content-type: text/html\r\n")


def configured(
    root: Path, provider: ScriptedProvider, users: JsonObject, variables: Mapping[str, str]
) -> ProjectFolders:
    """A place whose user, not its project, wrote `users`."""
    folders = make_folders(root, provider)
    folder = root / "home" / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_bytes(codec.encode({"experimental": users}))
    folders.variables.update(variables)
    return folders


async def state_of(api: Api, provider: ScriptedProvider, call: Call) -> tuple[str, JsonObject]:
    provider.then(calls(call), text("seen"))
    session = await api.create()
    _, assistant, _ = await api.ask(session, "look it up")
    return session, assistant["content"][0]["state"]


@requirement("S184")
async def test_a_page_of_an_allowed_host_reaches_the_model(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with serving(replying(PAGE)) as server:
        users: JsonObject = {"webfetch": {"allowed_hosts": [f"127.0.0.1:{server.port}"]}}
        async with running(configured(tmp_path, provider, users, {})) as instance:
            call = Call("webfetch", {"url": server.url})
            _, state = await state_of(instance.api, provider, call)
    assert state["status"] == "completed"
    assert [part["text"] for part in state["content"]] == ["# Inside"]
    assert provider.requests[1].messages[-1]["content"] == "# Inside"


async def test_a_project_cannot_open_the_users_network(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with serving(replying(PAGE)) as server:
        experimental = {"webfetch": {"allowed_hosts": ["127.0.0.1"]}}
        folders = make_folders(tmp_path, provider, experimental=experimental)
        async with running(folders) as instance:
            call = Call("webfetch", {"url": server.url})
            _, state = await state_of(instance.api, provider, call)
    assert state["status"] == "error"
    assert "not on the public internet" in state["error"]["message"]
    assert server.connections == 0


async def test_the_key_of_a_search_is_in_no_answer_event_file_or_log(
    tmp_path: Path, provider: ScriptedProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    found = {"result": {"content": [{"type": "text", "text": f"it is {KEY}"}]}}
    answer = replying(response(codec.encode(found), headers="content-type: application/json\r\n"))
    async with serving(answer) as server:
        users: JsonObject = {"websearch": {"provider": "exa", "url": f"{server.url}/mcp"}}
        folders = configured(tmp_path, provider, users, {"EXA_API_KEY": KEY})
        async with running(folders) as instance:
            call = Call("websearch", {"query": "what is it"})
            session, state = await state_of(instance.api, provider, call)
            events = await instance.api.history(session)
    assert state["content"][0]["text"] == "it is (key)"
    assert server.requests[0].headers["x-api-key"] == KEY
    assert KEY.encode() not in codec.encode(events)
    assert all(KEY.encode() not in request.raw for request in provider.requests)
    files = [path for path in folders.data.rglob("*") if path.is_file()]
    assert folders.database in files
    assert all(KEY.encode() not in path.read_bytes() for path in files)
    assert KEY not in caplog.text


async def test_both_tools_are_offered(api: Api, provider: ScriptedProvider) -> None:
    provider.then(text("hello"))
    await api.ask(await api.create(), "hi")
    offered = {tool["function"]["name"] for tool in provider.requests[0].body["tools"]}
    assert {"webfetch", "websearch"} <= offered
