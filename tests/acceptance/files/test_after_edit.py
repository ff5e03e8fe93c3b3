"""Formatters and checkers of the configuration, through a whole server."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.support import language_server
from tests.support.instance import Instance, running
from tests.support.project import distrust, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.watched_processes import has_process_in

UPPER = "import sys; p = sys.argv[1]; t = open(p).read().upper(); open(p, 'w').write(t)"
COMPLAIN = "import sys; print(sys.argv[1] + ':1: error: shouting'); sys.exit(1)"


def programs() -> JsonObject:
    def run(script: str) -> JsonObject:
        return {"command": [sys.executable, "-c", script, "$FILE"], "extensions": [".txt"]}

    return {
        "formatter": {"upper": run(UPPER), "off": {**run(COMPLAIN), "disabled": True}},
        "experimental": {"diagnostics": {"calm": run(COMPLAIN)}},
    }


@asynccontextmanager
async def configured(
    root: Path, provider: ScriptedProvider, *, users: JsonObject, projects: JsonObject
) -> AsyncGenerator[tuple[Instance, Path]]:
    folders = make_folders(root, provider, **users)
    distrust(folders)
    (folders.project / "opencode.json").write_bytes(codec.encode(projects))
    async with running(folders) as instance:
        yield instance, folders.project


async def written(instance: Instance, provider: ScriptedProvider) -> str:
    """What the model is told after it has written a file."""
    provider.then(calls(Call("write", {"path": "a.txt", "content": "quiet\n"})), text("done"))
    session = await instance.api.create()
    await instance.api.ask(session, "write it")
    return provider.requests[-1].messages[-1]["content"]


async def test_a_file_is_formatted_checked_and_told_of(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with configured(tmp_path, provider, users=programs(), projects={}) as (instance, project):
        async with instance.api.stream("/api/event") as live:
            said = await written(instance, provider)
            seen = await live.until("file.edited")
        assert (project / "a.txt").read_text() == "QUIET\n"
    assert "Created file successfully: a.txt" in said
    assert f"Diagnostics after this edit:\n{project}/a.txt:1: error: shouting" in said
    assert seen[-1]["data"] == {"file": str(project / "a.txt")}
    assert seen[-1]["location"] == {"directory": str(project)}


async def test_a_project_that_nobody_trusts_starts_nothing(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with configured(tmp_path, provider, users={}, projects=programs()) as (instance, project):
        said = await written(instance, provider)
        assert (project / "a.txt").read_text() == "quiet\n"
    assert said == "Created file successfully: a.txt"


async def test_a_user_can_switch_formatters_off(tmp_path: Path, provider: ScriptedProvider) -> None:
    users = {**programs(), "formatter": False}
    async with configured(tmp_path, provider, users=users, projects={}) as (instance, project):
        await written(instance, provider)
        assert (project / "a.txt").read_text() == "quiet\n"


def servers(journal: Path) -> JsonObject:
    command = [sys.executable, language_server.__file__, "sound", str(journal)]
    return {"lsp": {"scripted": {"command": command, "extensions": ["txt"], "env": {"LEVEL": "2"}}}}


async def told_of_errors(instance: Instance, provider: ScriptedProvider) -> str:
    wrong = {"path": "a.txt", "content": "fine\nwrong\n"}
    provider.then(calls(Call("write", wrong)), text("done"))
    session = await instance.api.create()
    await instance.api.ask(session, "write it")
    return provider.requests[-1].messages[-1]["content"]


async def test_what_a_language_server_finds_is_told_with_the_edit(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    journal = tmp_path / "project" / "journal"
    users = servers(journal)
    async with configured(tmp_path, provider, users=users, projects={}) as (instance, project):
        assert not journal.exists()
        said = await told_of_errors(instance, provider)
    began = codec.decode_any(journal.read_bytes().splitlines()[0])
    assert said == (
        "Created file successfully: a.txt\n\nDiagnostics after this edit:\n"
        "a.txt:2:1: error: this is wrong [test wrong]"
    )
    assert "LEVEL" in began["variables"]
    assert not has_process_in(project)


async def test_the_server_of_a_project_that_nobody_trusts_is_not_started(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    projects = servers(tmp_path / "journal")
    async with configured(tmp_path, provider, users={}, projects=projects) as (instance, _):
        assert await told_of_errors(instance, provider) == "Created file successfully: a.txt"
    assert not (tmp_path / "journal").exists()


async def test_language_servers_can_be_switched_off(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    users = servers(tmp_path / "journal")
    off = {"lsp": {"scripted": {**users["lsp"]["scripted"], "disabled": True}}}
    async with configured(tmp_path, provider, users=off, projects={}) as (instance, _):
        assert await told_of_errors(instance, provider) == "Created file successfully: a.txt"
    assert not (tmp_path / "journal").exists()
