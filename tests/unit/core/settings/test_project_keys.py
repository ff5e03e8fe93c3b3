"""Keys of a project's configuration: every key has a row that says when it counts."""

from typing import Final

import pytest
from msgspec.structs import replace

from perdure.core.config_file import legacy
from perdure.core.config_file.entries import DiagnosticsEntry, ExperimentalEntry, OtherEntry
from perdure.core.settings import document as config_document
from perdure.core.settings import project_keys, trust
from perdure.core.settings.document import Document
from perdure.core.settings.project_keys import KEYS, Key
from perdure.schema.codec import JsonObject, JsonValue

ABOUT_THE_FILE: Final = frozenset(
    {
        "directory",
        "granted",
        "managed",
        "never_read",
        "path",
        "plugin",
        "problems",
        "text",
        "trust",
        "unread",
        "written",
    }
)
"""Fields of Document that hold no setting."""

RULE: Final[JsonObject] = {"action": "*", "resource": "*", "effect": "allow"}
LOGIN: Final[JsonObject] = {"token_url": "https://a.example/t", "client_id": "c"}
VALUES: Final[JsonObject] = {
    "agents": {"a": {"permissions": [RULE]}},
    "attachments": {"image": {"max_width": 5}},
    "commands": {"c": {"template": "!`id`"}},
    "compaction": {"auto": False},
    "default_agent": "a",
    "experimental.bash": {"allowed_variables": ["*"]},
    "experimental.budget": {"turns": 5},
    "experimental.diagnostics": {"x": {"command": ["x"]}},
    "experimental.dropped_answers": "fail",
    "experimental.logins": {"p": {"m": {**LOGIN, "authorize_url": "https://a.example/a"}}},
    "experimental.mcp_search": 5,
    "experimental.patience": True,
    "experimental.policies": [{"effect": "deny", "action": "provider.use", "resource": "*"}],
    "experimental.recovery": "retry",
    "experimental.timezone": "Europe/Paris",
    "experimental.webfetch": {"allowed_hosts": ["*"]},
    "experimental.websearch": {"provider": "exa"},
    "formatter": {"x": {"command": ["x"]}},
    "instructions": ["https://evil.example"],
    "lsp": {"x": {"command": ["x"]}},
    "mcp": {"servers": {"x": {"type": "local", "command": ["x"]}}},
    "model": "p/m",
    "permissions": [RULE],
    "providers": {"p": {"name": "P"}},
    "references": {"r": {"repository": "https://github.com/a/b"}},
    "sandbox": {"mode": "danger-full-access"},
    "shell": "./evil",
    "skills": ["https://evil.example"],
    "snapshots": False,
    "tool_output": {"max_lines": 5},
}
"""A value for each key that a Document holds."""


def name_of(key: Key) -> str:
    return ".".join(map(str, key.at))


def read(key: Key, value: JsonValue) -> Document:
    for name in reversed(key.at):
        value = {str(name): value}
    return config_document.read("opencode.json", "project", value)


HELD: Final = [key for key in KEYS if key.field is not None]


def test_every_setting_of_a_document_has_a_row() -> None:
    assert {key.field for key in HELD} == set(Document.__struct_fields__) - ABOUT_THE_FILE
    assert {name_of(key) for key in HELD} == set(VALUES)


def test_every_key_that_is_checked_has_a_row() -> None:
    known = {name_of(key) for key in KEYS}
    assert set(OtherEntry.__struct_fields__) <= known
    experimental = (*ExperimentalEntry.__struct_fields__, *DiagnosticsEntry.__struct_fields__)
    assert {f"experimental.{name}" for name in experimental} <= known
    current = legacy.OLDER_NAMES.keys() - {"buffer", "disabled", "keep", "steps", "system"}
    assert current - {"policies"} <= known


@pytest.mark.parametrize("key", HELD, ids=name_of)
def test_a_key_counts_when_its_row_says_so(key: Key) -> None:
    assert key.field is not None
    before = read(key, VALUES[name_of(key)])
    assert before.problems == ()
    blank = getattr(Document(path="", trust="project"), key.field)
    held = getattr(before, key.field)
    assert held != blank
    untrusted = getattr(project_keys.counted(before), key.field)
    trusted = getattr(project_keys.counted(replace(before, granted=True)), key.field)
    assert untrusted == (held if key.counts in {"always", "narrows"} else blank)
    assert trusted == (blank if key.counts == "never" else held)
    own = replace(before, trust="user")
    assert project_keys.counted(own) is own


@pytest.mark.parametrize("key", KEYS, ids=name_of)
def test_what_trust_turns_on_is_said_in_words_and_changes_the_digest(key: Key) -> None:
    acts = key.counts in {"trusted", "files"}
    found = read(key, VALUES.get(name_of(key), {"timeout": 5}))
    assert bool(trust.list_requests(found)) == acts
    nothing = Document(path="opencode.json", trust="project")
    assert (trust.digest(found) != trust.digest(nothing)) == acts


def test_files_of_the_project_count_before_trust_and_addresses_after_it() -> None:
    listed = ["a.md", "https://evil.example", "HTTP://evil.example", "docs/*.md"]
    found = config_document.read(
        "opencode.json", "project", {"instructions": listed, "skills": listed}
    )
    untrusted = project_keys.counted(found)
    assert untrusted.instructions == untrusted.skills == ("a.md", "docs/*.md")
    assert project_keys.counted(replace(found, granted=True)).instructions == tuple(listed)
