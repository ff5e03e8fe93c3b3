"""Secrets of the user's environment and configuration: sent where they belong, found nowhere else.

Every place that holds one holds another canary, so that a leak says where it comes from. Then a
Session does what might let them out: it lists its variables, it fails with an answer that repeats
the key, it searches, it asks. Everything that can be read afterwards is looked through.
"""

import logging
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.protocol.api import API
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host.loopback import Loopback, replying, response, serving
from tests.requirements import requirement
from tests.support import fork_server
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, refusal, text

CANARY = re.compile(r"canary-[a-z]+")
JSON = "content-type: application/json\r\n"
VARIABLES = {
    "OPENAI_API_KEY": "canary-variable",
    "GATE": "canary-gate",
    "EXA_API_KEY": "canary-search",
    "GITHUB_TOKEN": "canary-token",
    "OPENCODE_SERVER_PASSWORD": "canary-password",
    "DATABASE_URL": "postgres://me:canary-address@db.example/x",
    "HEADER_SECRET": "canary-header",
}
COMMANDS = ("env", "set", "export -p", "printenv", "tr '\\0' '\\n' < /proc/self/environ")


@pytest.fixture
async def search() -> AsyncGenerator[Loopback]:
    """A service that repeats the key it was asked with."""
    found = {"result": {"content": [{"type": "text", "text": "you are canary-search"}]}}
    async with serving(replying(response(codec.encode(found), headers=JSON))) as server:
        yield server


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider, search: Loopback) -> ProjectFolders:
    """A project with a provider and a key of its own, of a user who has secrets everywhere."""
    made = make_folders(tmp_path, provider, model="gate/gate-model")
    made.variables.update(VARIABLES)
    folder = Path(made.variables["HOME"]) / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "key").write_text("canary-file")
    (folder / "opencode.json").write_bytes(codec.encode(users_own(provider, search)))
    return made


def users_own(provider: ScriptedProvider, search: Loopback) -> JsonObject:
    api = {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": provider.url}
    limit = {"context": 1_000_000, "output": 32_000}
    headers = {"x-own": "{env:HEADER_SECRET}", "x-filed": "{file:key}", "x-plain": "canary-plain"}
    keyed = {"request": {"body": {"apiKey": "canary-literal"}}}
    return {
        "providers": {
            "gate": {
                "api": api,
                "env": ["GATE"],
                "request": {"headers": headers},
                "models": {"gate-model": {"limit": limit}},
            },
            "keyed": {"api": api, **keyed, "models": {"m": {"limit": limit}}},
        },
        "experimental": {"websearch": {"provider": "exa", "url": f"{search.url}/mcp"}},
    }


async def live(api: Api, session: str, provider: ScriptedProvider) -> None:
    """Whatever may bring a secret to light."""
    every = [Call("bash", {"command": command}) for command in COMMANDS]
    every += [Call("websearch", {"query": "who am I"}), Call("glob", {"pattern": "**"})]
    provider.then(calls(*every), text("seen"))
    await api.ask(session, "look around")
    told = "bad keys canary-gate canary-header canary-file canary-plain"
    provider.then(refusal(401, {"error": {"message": told}}))
    await api.ask(session, "again")
    provider.then(refusal(500, b"<html>canary-gate at canary-plain</html>"), text("after all"))
    await api.ask(session, "and again")
    model = {"id": "m", "providerID": "keyed"}
    await api.post(f"/api/session/{session}/model", {"model": model})
    provider.then(refusal(401, {"error": {"message": "no such key: canary-literal"}}))
    await api.ask(session, "with another")


async def answers(api: Api, session: str) -> str:
    """What every reading route says of this Session and its Location."""
    paths = [f"/api/provider/{name}" for name in ("gate", "keyed", "fake", "openai")]
    for endpoint in API:
        if endpoint.method == "GET" and not endpoint.streams and not endpoint.upgrades:
            path = endpoint.path.replace("{sessionID}", session)
            paths.append(path.replace("{integrationID}", "gate"))
    said = [(await api.call("GET", path)).body.decode() for path in paths if "{" not in path]
    return "\n".join(said)


@requirement("S195")
async def test_no_secret_is_in_any_answer_event_file_log_or_request(
    folders: ProjectFolders,
    provider: ScriptedProvider,
    search: Loopback,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        async with api.stream("/api/event") as watched:
            await live(api, session, provider)
            seen = await watched.until("session.next.step.failed", sessionID=session)
        told = codec.encode(seen).decode() + await answers(api, session)
        told += codec.encode(await api.history(session)).decode()
        called = str(await api.messages(session))
    assert "look around" in told
    assert called.count("PATH=") >= len(COMMANDS)
    assert CANARY.findall(told) == []
    assert CANARY.findall(caplog.text) == []
    assert CANARY.findall("".join(request.raw.decode() for request in provider.requests)) == []
    files = [path for path in folders.data.rglob("*") if path.is_file()]
    assert folders.database in files
    leaking = [path for path in files if CANARY.search(path.read_bytes().decode("latin-1"))]
    assert leaking == []
    # They are not lost: each went where it belongs.
    first, last = provider.requests[0].headers, provider.requests[-1].headers
    assert first["authorization"] == "Bearer canary-gate"
    assert (first["x-own"], first["x-filed"], first["x-plain"]) == (
        "canary-header",
        "canary-file",
        "canary-plain",
    )
    assert last["authorization"] == "Bearer canary-literal"
    assert search.requests[0].headers["x-api-key"] == "canary-search"


@pytest.mark.parametrize("command", ["config", "doctor", "auth list"])
def test_no_command_prints_a_secret(folders: ProjectFolders, command: str) -> None:
    told = fork_server.run(
        command.split(" "),
        variables=folders.variables,
        directory=folders.project,
        input="",
        seconds_max=PATIENCE_SECONDS,
    )
    assert told.stdout
    assert CANARY.findall(told.stdout + told.stderr) == []
