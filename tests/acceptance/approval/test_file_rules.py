"""Rules for files, seen from outside: what a model is told, and what a person is asked."""

from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.acceptance.approval.test_permissions import asked, prompted, reply, tool_states
from tests.acceptance.session_scripts import SessionScripts, task
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

SECRET = "open-sesame"
READ_ENV = Call("read", {"path": ".env"})
WRITE_AGENTS = Call("write", {"path": "AGENTS.md", "content": "Obey.\n"})
NAMING = {"action": "edit", "resource": "AGENTS.md", "effect": "allow"}


def rule(effect: str, action: str, resource: str) -> JsonObject:
    return {"action": action, "resource": resource, "effect": effect}


def configure_user(folders: ProjectFolders, **settings: object) -> None:
    folder = folders.project.parent / "home" / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_bytes(codec.encode(settings))


def told(provider: ScriptedProvider) -> str:
    """Everything that any model was ever sent."""
    return "\n".join(str(request.messages) for request in provider.requests)


@pytest.mark.parametrize("agent", ["explore", "general"])
@pytest.mark.parametrize(
    "call", [READ_ENV, Call("grep", {"path": ".env", "pattern": "."})], ids=lambda call: call.name
)
async def test_a_subagent_asks_before_it_reads_what_its_caller_would_ask_for(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider, agent: str, call: Call
) -> None:
    (folders.project / ".env").write_text(f"TOKEN={SECRET}\n")
    scripts = SessionScripts(provider)
    scripts.add("root", calls(task("dig", agent)), text("thanks"))
    scripts.add("dig", calls(call), text("well"))
    session = await api.create()
    async with api.stream("/api/event") as live:
        await live.until("server.connected")
        await api.prompt(session, "root")
        request = await asked(live)
    assert (request["action"], request["resources"]) == ("read", [".env"])
    await reply(api, request, "reject", "not that one")
    await api.wait(session)
    assert SECRET not in told(provider)


async def test_the_words_of_a_model_to_a_subagent_attach_no_file_that_it_may_not_read(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / ".env").write_text(f"TOKEN={SECRET}\n")
    (folders.project / "notes.txt").write_text("plain words\n")
    scripts = SessionScripts(provider)
    scripts.add("root", calls(task("dig in @.env and @notes.txt", "explore")), text("thanks"))
    session = await api.create()
    await api.ask(session, "root")
    assert "plain words" in told(provider)
    assert SECRET not in told(provider)


async def test_a_search_for_everything_does_not_find_what_must_be_asked_for(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "prod.env").write_text(f"TOKEN={SECRET}\n")
    provider.then(calls(Call("grep", {"pattern": "TOKEN"})), text("done"))
    await api.ask(await api.create(), "find it")
    assert SECRET not in told(provider)
    assert "needs permission: prod.env" in told(provider)


@pytest.mark.parametrize("name", ["secrets/AGENTS.md", "AGENTS.md"])
async def test_instructions_that_may_not_be_read_are_not_told(
    tmp_path: Path, provider: ScriptedProvider, name: str
) -> None:
    folders = make_folders(tmp_path, provider, permissions=[rule("deny", "read", name)])
    path = folders.project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(SECRET)
    (folders.project / "secrets").mkdir(exist_ok=True)
    (folders.project / "secrets" / "a.txt").write_text("a")
    provider.then(calls(Call("read", {"path": "secrets/a.txt"})), text("one"), text("two"))
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "look")
        await instance.api.ask(session, "again")
    assert SECRET not in told(provider)


async def test_a_link_called_like_instructions_does_not_tell_another_file(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / ".env").write_text(SECRET)
    (folders.project / "AGENTS.md").symlink_to(".env")
    await api.ask(await api.create(), "hello")
    assert SECRET not in told(provider)


async def test_a_skill_that_may_not_be_read_is_neither_listed_nor_loaded(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    permissions = [rule("deny", "read", ".opencode/skills/*")]
    folders = make_folders(tmp_path, provider, permissions=permissions)
    skill = folders.project / ".opencode" / "skills" / "tea" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(f"---\nname: tea\ndescription: about {SECRET}\n---\nBoil {SECRET}.\n")
    provider.then(calls(Call("skill", {"name": "tea"})), text("done"))
    async with running(folders) as instance:
        await instance.api.ask(await instance.api.create(), "make some")
    assert "Denied by the rule" in told(provider)
    assert SECRET not in told(provider)


async def test_a_denied_file_is_listed_for_a_person_and_not_shown(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    permissions = [rule("deny", "read", "*"), rule("deny", "edit", "*")]
    folders = make_folders(tmp_path, provider, permissions=permissions)
    (folders.project / ".env").write_text(SECRET)
    async with running(folders) as instance:
        read = await instance.api.call("GET", "/api/fs/read/.env")
        assert read.status == 403
        assert SECRET.encode() not in read.body
        listed = (await instance.api.get("/api/fs/list"))["data"]
    assert ".env" in [entry["path"] for entry in listed]


async def test_a_file_that_others_obey_is_asked_about_with_the_difference(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(calls(WRITE_AGENTS), text("done"), calls(WRITE_AGENTS), text("done"))
    session = await api.create()
    async with prompted(api, session) as live:
        request = await asked(live)
        assert (request["resources"], request["save"]) == (["AGENTS.md"], ["AGENTS.md"])
        assert "+Obey." in request["metadata"]["diff"]
        assert "coding agents obey it" in request["metadata"]["reason"]
        assert not (folders.project / "AGENTS.md").exists()
        await reply(api, request, "always")
    await api.wait(session)
    assert (folders.project / "AGENTS.md").read_text() == "Obey.\n"
    # It was saved for exactly this file, and is not asked again.
    await api.ask(session, "again")
    states = await tool_states(api, session)
    assert [state["status"] for state in states] == ["completed", "completed"]


async def test_a_rule_of_the_user_that_names_the_file_lets_it_be_changed(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    configure_user(folders, permissions=[NAMING])
    provider.then(calls(WRITE_AGENTS), text("done"))
    async with running(folders) as instance:
        await instance.api.ask(await instance.api.create(), "write")
    assert (folders.project / "AGENTS.md").exists()


async def test_a_rule_of_the_project_does_not(tmp_path: Path, provider: ScriptedProvider) -> None:
    folders = make_folders(tmp_path, provider, permissions=[NAMING])
    provider.then(calls(WRITE_AGENTS), text("done"))
    async with running(folders) as instance:
        session = await instance.api.create()
        async with prompted(instance.api, session) as live:
            assert (await asked(live))["resources"] == ["AGENTS.md"]
    assert not (folders.project / "AGENTS.md").exists()
