"""What a project's configuration asks for that only a person grants."""

import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.core.config_file.substitution import Trust
from perdure.core.settings import document as config_document
from perdure.core.settings import settings, trust
from perdure.core.settings.document import Document
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

COMPATIBLE = "@ai-sdk/openai-compatible"


def document(value: JsonValue, kind: Trust = "project") -> Document:
    return config_document.read("opencode.json", kind, value, text=codec.encode(value))


def acme(**options: JsonValue) -> JsonObject:
    entry = {"npm": COMPATIBLE, "options": {"baseURL": "https://acme.example/v1", **options}}
    return {"provider": {"acme": entry}}


def says(value: JsonValue) -> list[str]:
    return [wish.says for wish in trust.list_requests(document(value))]


@pytest.mark.parametrize(
    ("asks", "wanted"),
    [
        (
            {"formatter": {"x": {"command": ["sh", "-c", "date; id"]}}},
            ["run sh -c 'date; id' (formatter.x)"],
        ),
        ({"lsp": {"py": {"command": ["pyls"]}}}, ["run pyls (lsp.py)"]),
        ({"formatter": {"x": {"environment": {"A": "b"}}}}, ["run x (formatter.x)"]),
        ({"plugin": ["./evil.ts"]}, ["run ./evil.ts (plugins[0])"]),
        ({"formatter": {"x": {"command": ["a"], "disabled": True}}}, []),
        ({"formatter": False, "lsp": True, "plugin": "x", "mcp": 3}, []),
        ({"model": "a/b", "instructions": ["README.md"]}, []),
        (acme(), ["send your key for acme to https://acme.example"]),
        (acme(apiKey="its-own"), []),
    ],
)
def test_a_person_reads_what_a_project_wants(asks: JsonObject, wanted: list[str]) -> None:
    assert says(asks) == wanted
    assert trust.list_requests(document(asks, "user")) == ()


def test_a_local_server_without_a_key_needs_no_trust() -> None:
    local = {"npm": COMPATIBLE, "options": {"baseURL": "http://localhost:11434/v1"}}
    assert says({"provider": {"ollama": local}}) == []
    with_key = {**local, "env": ["OPENAI_API_KEY"]}
    assert says({"provider": {"ollama": with_key}}) == [
        "send your key for ollama (OPENAI_API_KEY) to http://localhost:11434"
    ]


def test_an_mcp_server_is_a_program_unless_it_is_somewhere_else() -> None:
    servers = {
        "here": {"type": "local", "command": ["npx", "thing"]},
        "there": {"type": "remote", "url": "https://mcp.example"},
    }
    assert says({"mcp": servers}) == ["run npx thing (mcp.servers.here)"]


def test_nothing_hides_in_what_a_person_decides_on() -> None:
    hostile = {"formatter": {"\u202ex": {"command": ["ls", "\x1b]0;a\x07", "\x1b[2J", "\n"]}}}
    [shown] = says(hostile)
    assert shown.isprintable()
    assert "\\x1b]0;a\\x07" in shown
    assert "\\u202e" in shown
    long = says({"formatter": {"x": {"command": ["a" * 5_000]}}})[0]
    assert long.endswith("(4000 more characters) (formatter.x)")


@limited(max_examples=30, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists))
def test_no_configuration_makes_looking_for_wishes_fail(value: JsonValue) -> None:
    for key in ("formatter", "lsp", "plugin", "plugins", "mcp", "provider", "experimental"):
        assert all(wish.isprintable() for wish in says({key: value}))
        assert all(wish.isprintable() for wish in says({key: {"x": value, "servers": value}}))


def test_commands_may_run_once_every_document_that_names_one_is_trusted() -> None:
    mine = document({"formatter": {"mine": {"command": ["fmt"]}}}, "user")
    theirs = document({"formatter": {"theirs": {"command": ["fmt"]}}})
    assert settings.merge([mine]).may_run_commands
    assert not settings.merge([mine, theirs]).may_run_commands
    assert settings.merge([mine, replace(theirs, granted=True)]).may_run_commands


def test_a_trusted_project_may_send_a_provider_of_the_user_elsewhere() -> None:
    users = document(acme(apiKey="secret"), "user")
    moved = {
        "provider": {"acme": {"npm": COMPATIBLE, "options": {"baseURL": "https://proxy.example"}}}
    }
    stays = settings.merge([users, document(moved)])
    assert stays.providers["acme"] == stays.user_providers["acme"]
    assert any("do not trust" in problem.message for problem in stays.problems)
    goes = settings.merge([users, replace(document(moved), granted=True)])
    assert codec.to_json_value(goes.providers["acme"])["api"]["url"] == "https://proxy.example"
    assert goes.problems == ()


def test_a_project_with_a_key_of_its_own_never_moves_a_provider_of_the_user() -> None:
    users = document(acme(apiKey="secret"), "user")
    moved = document(acme(apiKey="its-own", baseURL="https://proxy.example"))
    found = settings.merge([users, replace(moved, granted=True)])
    api = codec.to_json_value(found.providers["acme"])["api"]
    assert api["url"] == "https://acme.example/v1"
