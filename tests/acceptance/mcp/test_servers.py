"""MCP servers through a whole server: their tools are offered, asked for, called and told."""

import os
from pathlib import Path

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.acceptance.mcp.mcp_project import (
    ALLOWED,
    heard,
    local,
    offered,
    offered_by,
    results,
    with_server,
)
from tests.support.instance import running
from tests.support.polling import until
from tests.support.project import distrust, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.watched_processes import has_process_in

OWN = ["it_fail", "it_picture", "it_say"]


async def test_tools_are_offered_called_and_told(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = with_server(tmp_path, provider)
    journal = folders.project / "journal"
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.get(f"/api/session/{session}/provider-context")
        # Looking at a Session starts nothing.
        assert not journal.exists()
        provider.then(calls(Call("it_say", {"text": "hello"}), Call("it_fail", {})), text("done"))
        await instance.api.ask(session, "say it")
        assert has_process_in(folders.project)
    assert not has_process_in(folders.project)
    assert offered_by(provider.requests[0], "it") == OWN
    assert results(provider.requests[-1]) == ["said hello", "It went wrong."]
    assert "These MCP servers offer tools" in provider.requests[0].texts("system")[0]


async def test_sessions_of_a_location_share_one_server(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = with_server(tmp_path, provider)
    async with running(folders) as instance:
        for number in range(3):
            session = await instance.api.create()
            provider.then(calls(Call("it_say", {"text": str(number)})), text("done"))
            await instance.api.ask(session, "say it")
            assert results(provider.requests[-1]) == [f"said {number}"]
    notes = heard(folders.project / "journal")
    assert len([note for note in notes if "pid" in note]) == 1


async def test_a_person_is_asked_unless_a_rule_allows_it(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = with_server(tmp_path, provider)
    folders.configure_user()
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        provider.then(calls(Call("it_say", {"text": "hello"})), text("done"))
        async with api.stream("/api/event") as live:
            await api.prompt(session, "say it")
            seen = await live.until("permission.v2.asked")
        request = seen[-1]["data"]
        assert request["action"] == "it_say"
        assert request["metadata"] == {"tool": "it_say", "input": {"text": "hello"}}
        notes = heard(folders.project / "journal")
        assert not any(note.get("method") == "tools/call" for note in notes)
        await api.post(
            f"/api/session/{session}/permission/{request['id']}/reply", {"reply": "once"}
        )
        await api.wait(session)
    assert results(provider.requests[-1]) == ["said hello"]


async def test_a_denied_server_is_not_offered_and_not_told_of(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = with_server(tmp_path, provider)
    folders.configure_user(permission={"it_*": "deny"})
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
    assert offered_by(provider.requests[0], "it") == []
    assert "MCP" not in provider.requests[0].texts("system")[0]


async def test_the_server_of_a_project_runs_in_the_sandbox_without_secrets(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = with_server(tmp_path, provider)
    folders.variables["GITHUB_TOKEN"] = "secret"
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
    (start,) = [note for note in heard(folders.project / "journal") if "pid" in note]
    assert "GITHUB_TOKEN" not in start["variables"]


async def test_a_server_of_the_user_runs_as_configured(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    folders.variables["GITHUB_TOKEN"] = "secret"
    entry = local(tmp_path / "journal", environment={"OWN": "1"}, cwd="below")
    (folders.project / "below").mkdir()
    folders.configure_user(mcp={"it": entry}, **ALLOWED)
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
    (start,) = [note for note in heard(tmp_path / "journal") if "pid" in note]
    assert {"GITHUB_TOKEN", "OWN"} <= set(start["variables"])
    assert start["cwd"] == str(folders.project / "below")


async def test_the_server_of_a_project_that_is_not_trusted_is_not_started(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    distrust(folders)
    asked: JsonObject = {"mcp": {"it": local(folders.project / "journal")}}
    (folders.project / "opencode.json").write_bytes(codec.encode(asked))
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
    assert offered_by(provider.requests[0], "it") == []
    assert not (folders.project / "journal").exists()


async def test_a_server_that_is_switched_off_is_not_started_and_ends_when_it_is(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(tmp_path, provider)
    journal = tmp_path / "journal"
    folders.configure_user(mcp={"it": local(journal, enabled=False)}, **ALLOWED)
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(text("1"), text("2"), text("3"))
        await instance.api.ask(session, "off")
        assert not journal.exists()
        folders.configure_user(mcp={"it": local(journal)}, **ALLOWED)
        await instance.api.ask(session, "on")
        (start,) = [note for note in heard(journal) if "pid" in note]
        folders.configure_user(mcp={"it": local(journal, enabled=False)}, **ALLOWED)
        await instance.api.ask(session, "off again")
        await until(lambda: not os.path.exists(f"/proc/{start['pid']}"))
    counts = [len(offered_by(request, "it")) for request in provider.requests]
    assert counts == [0, 3, 0]
    told = str(provider.requests[-1].messages)
    assert told.count("These MCP servers offer tools") == 1
    assert told.count("The tools of MCP servers are no longer available.") == 1


async def test_pictures_and_progress_arrive(tmp_path: Path, provider: ScriptedProvider) -> None:
    folders = with_server(tmp_path, provider)
    async with running(folders) as instance:
        session = await instance.api.create()
        provider.then(calls(Call("it_picture", {})), text("done"))
        await instance.api.ask(session, "draw")
        messages = await instance.api.messages(session)
        facts = await instance.api.facts(session)
    (part,) = [
        part
        for message in messages
        if message["type"] == "assistant"
        for part in message["content"]
        if part["type"] == "tool"
    ]
    kinds = [content["type"] for content in part["state"]["content"]]
    assert kinds == ["text", "file"]
    assert part["state"]["content"][1]["uri"].startswith("data:image/png;base64,")
    assert any("progress" in fact for fact in facts)


async def test_questions_of_a_server_are_asked_in_the_session(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = with_server(tmp_path, provider, "asks")
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        provider.then(calls(Call("it_say", {})), text("done"))
        async with api.stream("/api/event") as live:
            await api.prompt(session, "say it")
            seen = await live.until("question.v2.asked")
        request = seen[-1]["data"]
        assert [one["header"] for one in request["questions"]] == ["Your name", "age", "colour"]
        assert "it asks: Who are you?" in request["questions"][0]["question"]
        await api.post(
            f"/api/session/{session}/question/{request['id']}/reply",
            {"answers": [["Ada"], ["36"], ["blue"]]},
        )
        await api.wait(session)
    (result,) = results(provider.requests[-1])
    assert codec.decode_any(result) == {
        "action": "accept",
        "content": {"name": "Ada", "age": 36, "colour": "blue"},
    }


async def test_without_servers_nothing_is_offered(
    provider: ScriptedProvider, tmp_path: Path
) -> None:
    async with running(make_folders(tmp_path, provider)) as instance:
        session = await instance.api.create()
        provider.then(text("done"))
        await instance.api.ask(session, "hello")
    assert not any("mcp" in name for name in offered(provider.requests[0]))
