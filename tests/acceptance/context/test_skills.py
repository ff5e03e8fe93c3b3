"""Skills and references reach the model: listed for its agent, loaded when it asks, told anew."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host.loopback import Received, response, serving
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


def put(project: Path, name: str, content: str = "Text.") -> Path:
    file = project / ".opencode" / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: About {name}.\n---\n{content}\n")
    return file


def system(provider: ScriptedProvider, request: int) -> str:
    first = provider.requests[request].messages[0]
    assert first["role"] == "system"
    return first["content"]


def updates(messages: list[JsonObject]) -> list[str]:
    return [message["text"] for message in messages if message["type"] == "system"]


@requirement("S84", "S90")
async def test_a_model_is_told_of_a_skill_and_gets_its_text_when_it_asks(
    folders: ProjectFolders, api: Api, provider: ScriptedProvider
) -> None:
    put(folders.project, "tea", "Boil the water first.")
    provider.then(calls(Call("skill", {"name": "tea"})), text("done"))
    session = await api.create()
    *_, answer = await api.ask(session, "make tea")
    told = system(provider, 0)
    assert "<name>tea</name>\n    <description>About tea.</description>" in told
    assert "Boil the water first." not in told
    assert answer["content"][-1]["text"] == "done"
    (result,) = provider.requests[1].texts("tool")
    assert "Boil the water first." in result
    assert f"Base directory of this skill: {folders.project}/.opencode/skills/tea" in result


@requirement("S84", "S54")
async def test_a_skill_that_comes_or_goes_is_one_message_behind_an_unchanged_beginning(
    folders: ProjectFolders, api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("one"), text("two"), text("three"), text("four"))
    session = await api.create()
    await api.ask(session, "first")
    file = put(folders.project, "tea")
    messages = await api.ask(session, "second")
    (told,) = updates(messages)
    assert told.startswith("The available skills have changed. This list supersedes")
    assert "<name>tea</name>" in told
    await api.ask(session, "third")
    file.unlink()
    messages = await api.ask(session, "fourth")
    assert len(updates(messages)) == 2
    assert "<name>tea</name>" not in updates(messages)[-1]
    beginnings = {system(provider, number) for number in range(4)}
    assert len(beginnings) == 1


@requirement("S85")
async def test_switching_to_an_agent_with_other_skills_makes_a_message_and_keeps_the_baseline(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    rules = [
        {"action": "*", "resource": "*", "effect": "allow"},
        {"action": "skill", "resource": "tea", "effect": "deny"},
    ]
    agents = {"sober": {"permissions": rules}}
    folders = make_folders(tmp_path, provider, agents=agents)
    put(folders.project, "tea")
    put(folders.project, "toast")
    provider.then(text("one"), text("two"), text("three"))
    async with running(folders) as instance:
        api = instance.api
        session = await api.create()
        await api.ask(session, "first")
        await api.post(f"/api/session/{session}/agent", {"agent": "sober"})
        messages = await api.ask(session, "second")
        messages = await api.ask(session, "third")
    (told,) = updates(messages)
    assert "<name>toast</name>" in told
    assert "tea" not in told
    baseline = system(provider, 0)[system(provider, 0).index("You are working in") :]
    assert "<name>tea</name>" in baseline
    assert system(provider, 1).endswith(baseline)
    assert system(provider, 2).endswith(baseline)


@requirement("S84")
async def test_a_skill_that_is_denied_cannot_be_loaded_by_its_name(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    denied = [{"action": "skill", "resource": "secret", "effect": "deny"}]
    folders = make_folders(tmp_path, provider, permissions=denied)
    put(folders.project, "secret", "The hidden text.")
    provider.then(calls(Call("skill", {"name": "secret"})), text("oh"))
    async with running(folders) as instance:
        await instance.api.ask(await instance.api.create(), "go")
    assert "secret" not in system(provider, 0).replace("secrets", "")
    (result,) = provider.requests[1].texts("tool")
    assert "The hidden text." not in result


@asynccontextmanager
async def skill_site() -> AsyncGenerator[str]:
    """A real server that offers one skill."""
    index = {"skills": [{"name": "tea", "version": "1", "files": ["SKILL.md"]}]}
    offered = {
        "/s/index.json": codec.encode(index),
        "/s/tea/SKILL.md": b"---\nname: tea\ndescription: From afar.\n---\nBoil.",
    }

    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(response(offered[request.target]))

    async with serving(answer) as server:
        yield f"{server.url}/s"


@requirement("S90")
async def test_skills_of_a_server_arrive_beside_the_work_and_stay_on_disk(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    provider.then(text("one"), text("two"))
    async with skill_site() as url:
        folders = make_folders(tmp_path, provider, skills=[url])
        async with running(folders) as instance:
            await instance.api.ask(await instance.api.create(), "first")
            async with asyncio.timeout(15):
                while not list(folders.data.glob("cache/skills/*/tea/SKILL.md")):
                    await instance.api.get("/api/skill")
    assert "From afar." not in system(provider, 0)
    async with running(folders) as instance:
        # The server is gone; the copy is not.
        await instance.api.ask(await instance.api.create(), "second")
    assert "<description>From afar.</description>" in system(provider, 1)


@requirement("S84")
async def test_references_are_told_and_listed(tmp_path: Path, provider: ScriptedProvider) -> None:
    docs = {"path": "../docs", "description": "The handbook."}
    folders = make_folders(tmp_path, provider, references={"docs": docs})
    async with running(folders) as instance:
        await instance.api.ask(await instance.api.create(), "go")
        listed = (await instance.api.get("/api/reference"))["data"]
        skills = (await instance.api.get("/api/skill"))["data"]
    path = str(tmp_path / "docs")
    assert f"<name>docs</name>\n    <path>{path}</path>" in system(provider, 0)
    assert listed == [
        {
            "name": "docs",
            "path": path,
            "description": "The handbook.",
            "source": {"type": "local", "path": "../docs", "description": "The handbook."},
        }
    ]
    assert [skill["location"] for skill in skills] == ["/builtin/configure-perdure.md"]
