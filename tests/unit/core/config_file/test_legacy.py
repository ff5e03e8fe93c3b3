"""Documents in the older form mean today what they meant then."""

import pytest
from msgspec import UNSET

from perdure.core.config_file import legacy
from perdure.core.settings import document as config_document
from perdure.core.settings import settings
from perdure.core.settings.document import Document
from perdure.core.settings.settings import CompactionSettings, Settings
from perdure.schema.approval.permission import Rule
from perdure.schema.codec import JsonObject

RESHAPED: list[tuple[JsonObject, JsonObject]] = [
    (
        {"plugin": ["a", ["b", {"x": 1}], ["c"]]},
        {
            "plugins": [
                "a",
                {"package": "b", "options": {"x": 1}},
                {"package": "c", "options": {}},
            ]
        },
    ),
    ({"skills": {"paths": ["p"], "urls": ["u"]}}, {"skills": ["p", "u"]}),
    ({"autoshare": True}, {"share": "auto"}),
    ({"autoshare": True, "share": "manual"}, {"share": "manual"}),
    ({"snapshot": False}, {"snapshots": False}),
    ({"attachment": {"image": {}}}, {"attachments": {"image": {}}}),
    ({"reference": {"r": "./r"}}, {"references": {"r": "./r"}}),
    (
        {"mcp": {"s": {"type": "local", "command": ["x"], "enabled": False}}},
        {"mcp": {"servers": {"s": {"type": "local", "command": ["x"], "disabled": True}}}},
    ),
    (
        {
            "mcp": {"s": {"type": "remote", "url": "u", "oauth": {"clientId": "i"}}},
            "experimental": {"mcp_timeout": 5},
        },
        {
            "mcp": {
                "timeout": 5,
                "servers": {"s": {"type": "remote", "url": "u", "oauth": {"client_id": "i"}}},
            },
            "experimental": {"mcp_timeout": 5},
        },
    ),
    ({"mcp": {"s": {"enabled": True}}}, {"mcp": {"servers": {"s": {"disabled": False}}}}),
    (
        # Servers of the older form may have the names of the keys of the newer one.
        {
            "mcp": {
                "servers": {"type": "remote", "url": "u"},
                "timeout": {"type": "local", "command": ["x"]},
            }
        },
        {
            "mcp": {
                "servers": {
                    "servers": {"type": "remote", "url": "u"},
                    "timeout": {"type": "local", "command": ["x"]},
                }
            }
        },
    ),
    (
        {"mcp": {"timeout": {"startup": 5}, "servers": {}, "s": {"type": "remote", "url": "u"}}},
        {
            "mcp": {
                "timeout": {"startup": 5},
                "servers": {"s": {"type": "remote", "url": "u"}},
            }
        },
    ),
]


def read(value: JsonObject) -> Document:
    return config_document.read("/c/opencode.json", "user", value)


def merged(value: JsonObject) -> Settings:
    return settings.merge((read(value),))


def test_an_older_agent_keeps_everything_it_said() -> None:
    [(name, agent)] = read(
        {
            "agent": {
                "a": {
                    "name": "ignored",
                    "prompt": "Do.",
                    "maxSteps": 3,
                    "disable": False,
                    "temperature": 0.2,
                    "top_p": 0.9,
                    "reasoningEffort": "high",
                    "options": {"store": False},
                    "tools": {"bash": False},
                    "permission": {"edit": "ask"},
                }
            }
        }
    ).agents
    assert (name, agent.system, agent.steps, agent.disabled) == ("a", "Do.", 3, False)
    assert agent.permissions == (Rule("bash", "*", "deny"), Rule("edit", "*", "ask"))
    assert agent.request
    assert agent.request.body == {
        "store": False,
        "temperature": 0.2,
        "top_p": 0.9,
        "reasoning_effort": "high",
    }


def test_a_mode_is_always_a_primary_agent() -> None:
    [(_, agent)] = read({"mode": {"m": {"mode": "subagent", "prompt": "Do."}}}).agents
    assert (agent.mode, agent.system) == ("primary", "Do.")


def test_today_an_agents_unknown_keys_are_not_sent_anywhere() -> None:
    [(_, agent)] = read({"agents": {"a": {"temperature": 0.2, "note": "x"}}}).agents
    assert agent.request is UNSET


def test_a_key_of_today_beside_its_older_form_wins() -> None:
    document = read(
        {
            "agent": {"a": {"prompt": "old"}, "b": {"prompt": "b"}},
            "agents": {"a": {"system": "new"}},
            "snapshot": True,
            "snapshots": False,
            "command": {"c": {"template": "old"}},
            "commands": {"c": {"template": "new"}},
        }
    )
    assert {name: agent.system for name, agent in document.agents} == {"a": "new", "b": "b"}
    assert document.written["snapshots"] is False
    assert document.written["commands"] == {"c": {"template": "new"}}


def test_a_provider_with_only_a_key_describes_nothing_else() -> None:
    document = read({"provider": {"p": {"options": {"apiKey": "k"}, "models": {"m": {}}}}})
    assert document.providers["p"] == {
        "api": {"settings": {"apiKey": "k"}},
        "models": {"m": {}},
    }


def test_a_model_of_another_package_keeps_it() -> None:
    older = {
        "provider": {"npm": "x", "api": "https://m.example"},
        "status": "deprecated",
        "id": "w",
    }
    entry = read({"provider": {"p": {"models": {"m": older}}}}).providers["p"]["models"]["m"]
    assert entry["api"] == {
        "type": "aisdk",
        "package": "x",
        "url": "https://m.example",
        "id": "w",
    }
    assert entry["disabled"] is True


def test_the_older_words_for_compaction_are_understood() -> None:
    older = {"auto": False, "reserved": 100, "preserve_recent_tokens": 7, "prune": True}
    assert merged({"compaction": older}).compaction == CompactionSettings(
        auto=False, buffer_tokens=100, keep_tokens=7
    )
    both = {"reserved": 100, "buffer": 5, "keep": {"tokens": 0}}
    assert merged({"compaction": both}).compaction == CompactionSettings(
        buffer_tokens=5, keep_tokens=0
    )


@pytest.mark.parametrize(("older", "current"), RESHAPED)
def test_renamed_and_reshaped_keys(older: JsonObject, current: JsonObject) -> None:
    assert legacy.modernize(older) == current
    assert legacy.modernize(current) == current
    assert read(older).problems == ()


@pytest.mark.parametrize(
    ("value", "key"),
    [({"provider": 3}, "providers"), ({"agent": []}, "agents"), ({"mode": "x"}, "agents")],
)
def test_an_older_key_of_the_wrong_kind_is_reported(value: JsonObject, key: str) -> None:
    [problem] = read(value).problems
    assert problem.message == f"`{key}` must be an object; it is ignored"


def test_every_key_of_the_configuration_is_accepted_without_a_word() -> None:
    everything: JsonObject = {
        "$schema": "x",
        "shell": "/bin/sh",
        "model": "p/m",
        "default_agent": "build",
        "autoupdate": "notify",
        "share": "manual",
        "enterprise": {"url": "https://e.example"},
        "username": "me",
        "permissions": [],
        "agents": {},
        "snapshots": True,
        "watcher": {"ignore": ["dist/**"]},
        "formatter": {"black": {"command": ["black"], "extensions": [".py"]}},
        "lsp": False,
        "attachments": {"image": {"auto_resize": True, "max_width": 100}},
        "tool_output": {"max_lines": 5},
        "mcp": {"timeout": 5, "servers": {"s": {"type": "remote", "url": "u", "oauth": False}}},
        "compaction": {"auto": True, "buffer": 0, "keep": {"tokens": 0}},
        "skills": ["./skills"],
        "commands": {"c": {"template": "t", "subtask": True}},
        "instructions": ["docs/*.md"],
        "references": {"r": {"path": "./r"}},
        "plugins": ["x"],
        "experimental": {"policies": [], "timezone": "Europe/Paris", "other": 1},
        "providers": {},
        "a key of tomorrow": {},
    }
    assert read(everything).problems == ()
    found = merged(everything)
    assert found.timezone == "Europe/Paris"
    assert [entry.text for entry in found.instructions] == ["docs/*.md"]
    assert found.compaction == CompactionSettings(buffer_tokens=0, keep_tokens=0)


def test_a_mistake_in_a_key_for_another_program_is_told() -> None:
    wrong: JsonObject = {
        "mcp": {"servers": {"s": {"type": "telepathy"}}},
        "watcher": {"ignore": "dist"},
        "username": 3,
        "compaction": {"buffer": -1, "auto": False},
        "instructions": ["a", 3],
    }
    found = merged(wrong)
    addresses = {problem.message.split("`")[1] for problem in found.problems}
    assert addresses == {
        "mcp.servers.s",
        "watcher",
        "username",
        "compaction.buffer",
        "instructions[1]",
    }
    assert found.compaction.auto is False
    assert [entry.text for entry in found.instructions] == ["a"]
