"""Agents: who there is, who is chosen, and what each may do."""

import pytest
from msgspec import UNSET

from perdure.core.approval import rules as permission
from perdure.location.agents import agents
from perdure.location.agents.agents import Agents
from perdure.schema import codec
from perdure.schema.approval.permission import Effect, Rule
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import LocationFolders


def load(folders: LocationFolders, config: JsonObject | None = None) -> Agents:
    if config is not None:
        folders.configure(config)
    return agents.load(folders.settings(), folders.environment)


def test_the_built_in_agents_are_listed_in_their_order(folders: LocationFolders) -> None:
    listed = [(agent.id, agent.mode, agent.hidden) for agent in load(folders).list()]
    assert listed == [
        ("build", "primary", False),
        ("plan", "primary", False),
        ("general", "subagent", False),
        ("explore", "subagent", False),
        ("compaction", "primary", True),
        ("title", "primary", True),
        ("summary", "primary", True),
    ]


@pytest.mark.parametrize(
    ("agent", "action", "resource", "effect"),
    [
        ("build", "bash", "rm -rf x", "allow"),
        ("build", "edit", "src/a.py", "allow"),
        ("build", "read", "src/a.py", "allow"),
        ("build", "read", ".env", "ask"),
        ("build", "read", "deploy/.env.production", "ask"),
        ("build", "read", ".env.example", "allow"),
        ("build", "external_directory", "/etc/*", "ask"),
        ("build", "external_directory", "{data}/tool-output/*", "allow"),
        ("build", "question", "*", "allow"),
        ("build", "plan_enter", "*", "allow"),
        ("build", "plan_exit", "*", "deny"),
        ("plan", "edit", "src/a.py", "deny"),
        ("plan", "edit", ".opencode/plans/next.md", "allow"),
        ("plan", "edit", ".opencode/plans/next.py", "deny"),
        ("plan", "edit", "{data}/plans/next.md", "allow"),
        ("plan", "plan_exit", "*", "allow"),
        ("general", "todowrite", "*", "deny"),
        ("general", "question", "*", "deny"),
        ("explore", "grep", "x", "allow"),
        ("explore", "read", "a.py", "allow"),
        ("explore", "bash", "ls", "deny"),
        ("explore", "edit", "a.py", "deny"),
        ("explore", "external_directory", "/etc/*", "ask"),
        ("title", "read", "a.py", "deny"),
        ("compaction", "bash", "ls", "deny"),
        ("nobody", "read", "a.py", "deny"),
    ],
)
def test_built_in_rules(
    folders: LocationFolders, agent: str, action: str, resource: str, effect: Effect
) -> None:
    rules = load(folders).rules(agent)
    named = resource.replace("{data}", folders.environment.data_dir)
    assert permission.evaluate(rules, action, named) == effect


def test_global_rules_reach_every_agent_and_an_agents_own_come_last(
    folders: LocationFolders,
) -> None:
    folders.configure_user(
        {
            "permissions": [{"action": "bash", "resource": "*", "effect": "ask"}],
            "agents": {
                "build": {
                    "permissions": [{"action": "bash", "resource": "ls *", "effect": "allow"}]
                },
                "reviewer": {
                    "permissions": [{"action": "read", "resource": "~/x", "effect": "allow"}]
                },
            },
        },
    )
    found = load(folders)
    assert permission.evaluate(found.rules("build"), "bash", "ls -l") == "allow"
    assert permission.evaluate(found.rules("build"), "bash", "rm x") == "ask"
    assert permission.evaluate(found.rules("plan"), "bash", "ls -l") == "ask"
    assert permission.rulesets(found.rules("reviewer")) == (
        (
            Rule("bash", "*", "ask"),
            Rule("read", f"{folders.home}/x", "allow"),
        ),
    )


def test_an_agent_takes_only_the_fields_that_the_configuration_names(
    folders: LocationFolders,
) -> None:
    folders.configure_user({"agents": {"build": {"model": "p/a/b", "variant": "fast", "steps": 3}}})
    found = load(folders, {"agents": {"build": {"description": "Mine", "model": "q/c"}}})
    build = found.get("build")
    assert build is not None
    assert build.model == ModelRef(id="c", provider_id="q", variant="fast")
    assert (build.description, build.steps, build.mode) == ("Mine", 3, "primary")
    assert build.system
    general = found.get("general")
    assert general is not None
    assert general.model is UNSET


def test_a_disabled_agent_is_gone_and_can_be_made_anew(folders: LocationFolders) -> None:
    folders.configure_user({"agents": {"plan": {"disabled": True}, "general": {"disabled": True}}})
    anew: JsonObject = {"agents": {"plan": {"description": "again"}}}
    found = load(folders, anew)
    assert found.get("general") is None
    assert found.get("plan") is None
    folders.variables["OPENCODE_CONFIG_CONTENT"] = codec.encode(anew).decode()
    plan = load(folders).get("plan")
    assert plan is not None
    assert (plan.mode, plan.permissions) == ("all", ())


@pytest.mark.parametrize(
    ("config", "chosen"),
    [
        ({}, "build"),
        ({"default_agent": "plan"}, "plan"),
        ({"default_agent": "explore"}, "build"),
        ({"default_agent": "title"}, "build"),
        ({"default_agent": "nobody"}, "build"),
        ({"agents": {"build": {"disabled": True}}}, "plan"),
        ({"agents": {"build": {"mode": "subagent"}, "plan": {"hidden": True}, "x": {}}}, "x"),
    ],
)
def test_without_a_name_the_default_is_chosen(
    folders: LocationFolders, config: JsonObject, chosen: str
) -> None:
    agent = load(folders, config).select(None)
    assert agent is not None
    assert agent.id == chosen


def test_a_named_agent_is_chosen_also_when_hidden(folders: LocationFolders) -> None:
    agent = load(folders).select("title")
    assert agent is not None
    assert agent.id == "title"


def test_no_agent_stands_in_for_an_unknown_one(folders: LocationFolders) -> None:
    assert load(folders, {"default_agent": "plan"}).select("nope") is None


def test_when_every_agent_is_disabled_there_is_none(folders: LocationFolders) -> None:
    gone: JsonObject = {"agents": {name: {"disabled": True} for name in ("build", "plan")}}
    found = load(folders, gone)
    assert found.select(None) is None


def test_what_an_agent_adds_to_requests_is_not_public(folders: LocationFolders) -> None:
    found = load(folders, {"agents": {"build": {"request": {"headers": {"x": "canary"}}}}})
    assert b"canary" not in codec.encode(found.list())


ANYTHING: JsonObject = {"action": "*", "resource": "*", "effect": "allow"}


def test_a_project_narrows_the_users_agents_and_never_widens_them(folders: LocationFolders) -> None:
    folders.configure_user(
        {
            "permission": {"bash": {"*": "ask", "rm *": "deny"}},
            "agent": {"careful": {"permission": {"edit": "deny"}}},
        }
    )
    found = load(
        folders,
        {
            "permissions": [ANYTHING, {"action": "read", "resource": "*.pem", "effect": "deny"}],
            "agents": {name: {"permissions": [ANYTHING]} for name in ("build", "careful", "own")},
        },
    )
    for agent in ("build", "plan", "careful", "own"):
        rules = found.rules(agent)
        assert permission.evaluate(rules, "bash", "rm x") == "deny", agent
        assert permission.evaluate(rules, "bash", "ls") == "ask", agent
    assert permission.evaluate(found.rules("plan"), "read", "a.pem") == "deny"
    assert permission.evaluate(found.rules("build"), "external_directory", "/etc/*") == "ask"
    assert permission.evaluate(found.rules("plan"), "edit", "a.py") == "deny"
    assert permission.evaluate(found.rules("careful"), "edit", "a.py") == "deny"


def test_an_agent_of_a_project_asks_for_what_it_does_not_mention(folders: LocationFolders) -> None:
    found = load(
        folders,
        {
            "agents": {
                "free": {"permissions": [ANYTHING]},
                "quiet": {"permissions": [{"action": "read", "resource": "*", "effect": "allow"}]},
            }
        },
    )
    assert permission.evaluate(found.rules("free"), "bash", "ls") == "allow"
    assert permission.evaluate(found.rules("free"), "read", ".env") == "ask"
    assert permission.evaluate(found.rules("quiet"), "read", "a.py") == "allow"
    assert permission.evaluate(found.rules("quiet"), "bash", "ls") == "ask"


def test_an_agent_that_a_project_removes_and_returns_keeps_its_bounds(
    folders: LocationFolders,
) -> None:
    folders.configure({"agents": {"plan": {"disabled": True}}})
    folders.configure({"agents": {"plan": {"permissions": [ANYTHING]}}}, name="opencode.jsonc")
    rules = agents.load(folders.settings(), folders.environment).rules("plan")
    assert permission.evaluate(rules, "edit", "a.py") == "deny"
