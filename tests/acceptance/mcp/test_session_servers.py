"""MCP servers that a client gives to one Session: used by it alone, ended with it, never shown."""

import logging
import os
import stat
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.acceptance.mcp.mcp_project import ALLOWED, heard, local, offered_by, results
from tests.support.instance import Instance, running
from tests.support.polling import until
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

SECRET = "zebra-crossing-4711"
PROGRAM: JsonObject = {"type": "local", "command": ["a"]}
OWN = ["it_fail", "it_picture", "it_say"]


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    made = make_folders(tmp_path, provider)
    made.configure_user(**ALLOWED)
    return made


def given(journal: Path, mode: str = "sound") -> JsonObject:
    return {**local(journal, mode), "environment": {"IT_SETTING": SECRET}}


def pids(journal: Path) -> list[int]:
    return [note["pid"] for note in heard(journal) if "pid" in note] if journal.exists() else []


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def create(instance: Instance, **servers: JsonObject) -> str:
    return await instance.api.create(mcp=dict(servers))


async def listed(instance: Instance, session: str) -> list[JsonObject]:
    return (await instance.api.get(f"/api/session/{session}/mcp"))["data"]


async def test_only_its_session_uses_them_and_they_end_when_it_is_idle(
    tmp_path: Path, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    journal = tmp_path / "journal"
    async with running(folders) as instance:
        api = instance.api
        sessions = instance.runtime.engine.get().location_registry.sessions
        mine, other = await create(instance, it=given(journal)), await api.create()
        assert not journal.exists()
        provider.then(calls(Call("it_say", {"text": "hello"})), text("done"))
        await api.ask(mine, "say it")
        assert results(provider.requests[-1]) == ["said hello"]
        provider.then(text("nothing"))
        await api.ask(other, "hello")
        assert offered_by(provider.requests[-1], "it") == []
        (one,) = await listed(instance, mine)
        assert (one["name"], one["session"], one["tools"]) == ("it", True, OWN)
        assert await listed(instance, other) == []
        sessions.idle_seconds = 0.01
        provider.then(text("again"))
        await api.ask(mine, "and rest")
        (pid,) = pids(journal)
        await until(lambda: is_gone(pid))
        # It starts again when the Session runs again, and the request begins as before.
        sessions.idle_seconds = 60
        before = provider.requests[-1].body["tools"]
        provider.then(calls(Call("it_say", {"text": "again"})), text("done"))
        await api.ask(mine, "say it again")
        assert provider.requests[-1].body["tools"] == before
        assert results(provider.requests[-1])[-1] == "said again"
        assert len(pids(journal)) == 2


async def test_two_sessions_may_mean_different_servers_by_one_name(
    tmp_path: Path, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    async with running(folders) as instance:
        for number in range(2):
            (tmp_path / f"{number}.tools").write_text(f"extra_{number}\n")
        both = [await create(instance, it=given(tmp_path / str(number))) for number in range(2)]
        for number, session in enumerate(both):
            provider.then(text("done"))
            await instance.api.ask(session, "hello")
            assert offered_by(provider.requests[-1], "it") == [f"it_extra_{number}", *OWN]


async def test_a_person_is_asked_before_each_call(
    tmp_path: Path, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    folders.configure_user()
    async with running(folders) as instance:
        api = instance.api
        session = await create(instance, it=given(tmp_path / "journal"))
        provider.then(calls(Call("it_say", {"text": "hello"})), text("done"))
        async with api.stream("/api/event") as live:
            await api.prompt(session, "say it")
            request = (await live.until("permission.v2.asked"))[-1]["data"]
        assert request["action"] == "it_say"
        reply: JsonObject = {"reply": "once"}
        await api.post(f"/api/session/{session}/permission/{request['id']}/reply", reply)
        await api.wait(session)
    assert results(provider.requests[-1]) == ["said hello"]


async def test_a_server_of_the_configuration_stands_before_one_of_the_same_name(
    tmp_path: Path, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    folders.configure_user(mcp={"a.b": local(tmp_path / "configured")}, **ALLOWED)
    async with running(folders) as instance:
        session = await create(instance, a_b=given(tmp_path / "given"))
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
        of_location, of_session = await listed(instance, session)
    assert (of_location["name"], of_location["status"]) == ("a.b", "connected")
    assert (of_session["name"], of_session["status"]) == ("a_b", "failed")
    assert "the configuration has a server with this name" in of_session["error"]
    assert not (tmp_path / "given").exists()


async def test_servers_are_replaced_at_the_next_turn_and_told(
    tmp_path: Path, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        provider.then(text("done"))
        await api.ask(session, "hello")
        first, second = tmp_path / "first", tmp_path / "second"
        body: JsonObject = {"servers": {"it": given(first)}}
        answer = await api.call("PUT", f"/api/session/{session}/mcp", body)
        assert [one["status"] for one in answer.json["data"]] == ["waiting"]
        provider.then(text("done"))
        await api.ask(session, "now")
        assert offered_by(provider.requests[-1], "it") == OWN
        body = {"servers": {"other": given(second)}}
        await api.call("PUT", f"/api/session/{session}/mcp", body)
        provider.then(text("done"))
        await api.ask(session, "and now")
        assert offered_by(provider.requests[-1], "it") == []
        assert offered_by(provider.requests[-1], "other") != []
        await until(lambda: is_gone(pids(first)[0]))
        await api.call("PUT", f"/api/session/{session}/mcp", {"servers": {}})
        await until(lambda: is_gone(pids(second)[0]))
        assert not list((folders.data / "session-mcp").iterdir())


async def test_they_start_again_after_a_restart_and_end_with_the_session(
    tmp_path: Path, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    journal = tmp_path / "journal"
    async with running(folders) as instance:
        session = await create(instance, it=given(journal))
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
    before = provider.requests[-1].body["tools"]
    await until(lambda: is_gone(pids(journal)[0]))
    async with running(folders) as instance:
        assert len(pids(journal)) == 1
        provider.then(text("done"))
        await instance.api.ask(session, "hello again")
        assert provider.requests[-1].body["tools"] == before
        # What it offers is known, so the turn did not wait for it.
        await until(lambda: len(pids(journal)) == 2)
        await instance.api.call("DELETE", f"/api/session/{session}")
        await until(lambda: is_gone(pids(journal)[1]))
    assert not list((folders.data / "session-mcp").iterdir())


async def test_their_secrets_are_shown_nowhere(
    tmp_path: Path,
    provider: ScriptedProvider,
    folders: ProjectFolders,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    remote: JsonObject = {
        "type": "remote",
        "url": f"{provider.url}/nothing",
        "headers": {"X-Setting": SECRET},
        "oauth": {"clientID": "me", "clientSecret": SECRET},
    }
    journal = tmp_path / "journal"
    async with running(folders) as instance:
        api = instance.api
        session = await create(instance, it=given(journal), far=remote)
        provider.then(text("done"))
        await api.ask(session, "hello")
        shown = [
            codec.encode(await api.get(f"/api/session/{session}{path}"))
            for path in ("", "/mcp", "/snapshot", "/message", "/history", "/provider-context")
        ]
        shown.append(codec.encode(await api.get("/api/session")))
        (file,) = (folders.data / "session-mcp").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert SECRET in file.read_text()
    assert not any(SECRET.encode() in each for each in shown)
    assert SECRET not in caplog.text
    for path in folders.data.glob("perdure.db*"):
        assert SECRET.encode() not in path.read_bytes()
    start = next(note for note in heard(journal) if "pid" in note)
    assert "IT_SETTING" in start["variables"]


UNUSABLE: list[tuple[JsonValue, str]] = [
    ({"it": {"type": "local"}}, "has no `command`"),
    ({"it": {"type": "local", "command": []}}, "has no `command`"),
    ({"it": {"type": "remote", "url": "ftp://a"}}, "`url`"),
    ({"it": {"type": "remote", "url": f"https://me:{SECRET}@a"}}, "`url`"),
    ({"": PROGRAM}, "name"),
    ({"x" * 101: PROGRAM}, "name"),
    ({"it": {**PROGRAM, "environment": {"A=": SECRET}}}, "environ"),
    ({"it": {"type": "local", "command": ["a\0"]}}, "NUL"),
    ({"it": {"type": "remote", "url": "https://a", "headers": {"A": f"{SECRET}\r\n"}}}, "head"),
    ({"it": {**PROGRAM, "timeout": 0}}, "timeout"),
    ({"it": {**PROGRAM, "timeout": {"startup": -1}}}, "timeout"),
    ({"a b": PROGRAM, "a_b": PROGRAM}, "same name"),
    ({f"n{n}": PROGRAM for n in range(33)}, "at most 32"),
    ({"it": {"type": "local", "command": ["a" * 70_000]}}, "bytes"),
    ({"it": {"type": "other"}}, "type"),
    ({"it": {**PROGRAM, "environment": {"A": 1}}}, "environment"),
    ({"it": {**PROGRAM, "environment": SECRET}}, "environment"),
    ({"it": {**PROGRAM, "type": SECRET}}, "type"),
    ({"it": {**PROGRAM, "headers": [SECRET]}}, "headers"),
    ({"it": SECRET}, "GivenMcpServer"),
]


async def test_servers_that_cannot_be_used_are_refused_and_nothing_is_kept(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        for servers, told in UNUSABLE:
            refused = await api.call("POST", "/api/session", {"mcp": servers})
            assert (refused.status, refused.tag) == (400, "InvalidRequestError")
            assert told in refused.body.decode()
            assert SECRET not in refused.body.decode()
            path = f"/api/session/{session}/mcp"
            again = await api.call("PUT", path, {"servers": servers})
            assert again.status == 400
        assert len((await api.get("/api/session"))["data"]) == 1
    assert not (folders.data / "session-mcp").exists()
