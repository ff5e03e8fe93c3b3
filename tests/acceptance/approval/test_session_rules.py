"""Permission rules of one Session: given at its creation, shown, changed, inherited, and ended."""

from pathlib import Path

import pytest

from perdure.host.clock import SystemClock
from perdure.schema.codec import JsonObject, JsonValue
from tests.acceptance.approval.test_permissions import waiting
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

DENY: JsonObject = {"action": "edit", "resource": "*", "effect": "deny"}
ALLOW: JsonObject = {"action": "edit", "resource": "made.txt", "effect": "allow"}
ASK_EDIT: JsonObject = {"action": "edit", "resource": "*", "effect": "ask"}
NOT_OFFERED = "Unknown tool: write"
"""What a model is told about a tool that is denied as a whole."""
WRITE = Call("write", {"path": "made.txt", "content": "x"})
TASK = Call("task", {"description": "make", "prompt": "make it", "subagent_type": "general"})


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider)


async def create(api: Api, *rules: JsonObject) -> str:
    body: JsonObject = {"permissions": list(rules)}
    return (await api.post("/api/session", body))["data"]["id"]


async def told(api: Api, provider: ScriptedProvider, session: str, *more: Call) -> str:
    """What the model is told about its last call."""
    provider.then(calls(*(more or (WRITE,))), text("done"))
    await api.ask(session, "do it")
    return provider.requests[-1].texts("tool")[-1]


async def set_rules(api: Api, session: str, *rules: JsonObject) -> JsonObject:
    body: JsonValue = {"permissions": list(rules)}
    return (await api.call("PUT", f"/api/session/{session}/rules", body)).json["data"]


async def test_a_rule_of_the_session_denies_there_alone(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    assert await told(api, provider, await create(api, DENY)) == NOT_OFFERED
    assert not (folders.project / "made.txt").exists()
    await told(api, provider, await create(api))
    assert (folders.project / "made.txt").exists()


async def test_rules_are_shown_and_hold_after_a_restart(
    provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    async with running(folders) as server:
        session = await create(server.api, DENY)
    async with running(folders) as server:
        shown = (await server.api.get(f"/api/session/{session}"))["data"]
        assert shown["permissions"] == [DENY]
        assert await told(server.api, provider, session) == NOT_OFFERED


async def test_a_rule_allows_what_would_be_asked_about(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    asking = make_folders(tmp_path / "asking", provider, permissions=[ASK_EDIT])
    async with running(asking) as server:
        await told(server.api, provider, await create(server.api, ALLOW))
        assert (asking.project / "made.txt").exists()
        provider.then(calls(WRITE))
        session = await create(server.api)
        await server.api.prompt(session, "do it")
        await waiting(server.api, session)
        await server.api.post(f"/api/session/{session}/interrupt")


async def test_a_rule_lifts_no_denial_of_the_user(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    folders.configure_user(permissions=[{**DENY, "resource": "made.txt"}])
    async with running(folders) as server:
        assert "Denied" in await told(server.api, provider, await create(server.api, ALLOW))


async def test_rules_can_be_changed_and_removed(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await create(api, DENY)
    assert (await set_rules(api, session, ALLOW))["permissions"] == [ALLOW]
    assert "permissions" not in await set_rules(api, session)
    await told(api, provider, session)
    assert (folders.project / "made.txt").exists()
    assert (await api.facts(session)).count("rules.changed") == 2


async def test_a_rule_that_has_ended_counts_no_longer(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    now = SystemClock().now_millis()
    later = await create(api, {**DENY, "expires": now + 3_600_000})
    assert await told(api, provider, later) == NOT_OFFERED
    ended = await create(api, {**DENY, "expires": now - 1})
    await told(api, provider, ended)
    assert (folders.project / "made.txt").exists()


async def test_a_subagent_has_the_rules_of_its_caller(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    session = await create(api, DENY)
    provider.then(calls(TASK), calls(WRITE), text("it cannot"), text("well then"))
    await api.ask(session, "do it")
    assert not (folders.project / "made.txt").exists()
    (child,) = (await api.get(f"/api/session/{session}/children"))["data"]
    shown = (await api.get(f"/api/session/{child['id']}"))["data"]
    assert shown["permissions"] == [DENY]
    await set_rules(api, session)
    shown = (await api.get(f"/api/session/{child['id']}"))["data"]
    assert "permissions" not in shown


async def test_a_denied_file_is_not_shown_as_an_instruction(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    (folders.project / "AGENTS.md").write_text("canary instruction")
    rule: JsonObject = {"action": "read", "resource": "AGENTS.md", "effect": "deny"}
    provider.then(text("done"), text("done"))
    await api.ask(await create(api, rule), "hello")
    assert "canary instruction" not in provider.requests[-1].raw.decode()
    await api.ask(await create(api), "hello")
    assert "canary instruction" in provider.requests[-1].raw.decode()


async def test_v1_gives_changes_and_shows_rules(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    rule: JsonObject = {"permission": "edit", "pattern": "*", "action": "deny"}
    made = await api.post("/session", {"permission": [rule]})
    assert made["permission"] == [rule]
    assert await told(api, provider, made["id"]) == NOT_OFFERED
    changed = (await api.call("PATCH", f"/session/{made['id']}", {"permission": []})).json
    assert "permission" not in changed


@pytest.mark.parametrize(
    "rules",
    [
        [{"action": "", "resource": "*", "effect": "deny"}],
        [{"action": "edit", "resource": "", "effect": "deny"}],
        [{"action": "edit", "resource": "*", "effect": "maybe"}],
        [{"action": "edit", "effect": "deny"}],
        [DENY] * 201,
        [{**DENY, "resource": "x" * 70_000}],
        "deny",
    ],
)
async def test_rules_that_make_no_sense_are_refused(api: Api, rules: JsonValue) -> None:
    answer = await api.call("POST", "/api/session", {"permissions": rules})
    assert answer.status == 400
