"""What a project's configuration asks for that only a person grants."""

import pytest
from hypothesis import given
from hypothesis import settings as limited
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.core.config_file.substitution import Trust
from perdure.core.settings import document as config_document
from perdure.core.settings import project_keys, settings, trust
from perdure.core.settings.document import Document
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

COMPATIBLE = "@ai-sdk/openai-compatible"
ALL = "permissions ((action *, resource *, effect allow))"
ACME = f"api (type aisdk, package {COMPATIBLE}, url https://acme.example/v1) (providers.acme)"


def document(value: JsonValue, kind: Trust = "project") -> Document:
    return config_document.read("opencode.json", kind, value, text=codec.encode(value))


def acme(**options: JsonValue) -> JsonObject:
    entry = {"npm": COMPATIBLE, "options": {"baseURL": "https://acme.example/v1", **options}}
    return {"provider": {"acme": entry}}


def says(value: JsonValue) -> list[str]:
    return [wish.description for wish in trust.list_requests(document(value))]


@pytest.mark.parametrize(
    ("asks", "wanted"),
    [
        (
            {"formatter": {"x": {"command": ["sh", "-c", "date; id"]}}},
            ["run sh -c 'date; id' (formatter.x)"],
        ),
        ({"lsp": {"py": {"command": ["pyls"]}}}, ["run pyls (lsp.py)"]),
        (
            {"formatter": {"x": {"environment": {"A": "b"}}}},
            ["run x with environment A b (formatter.x)"],
        ),
        ({"plugin": ["./evil.ts"]}, ["run ./evil.ts (plugins[0])"]),
        (
            {"formatter": {"x": {"command": ["a"], "disabled": True}}},
            ["turn x off (formatter.x)"],
        ),
        ({"formatter": False}, ["set formatter to false (formatter)"]),
        ({"model": "a/b", "instructions": ["README.md"]}, ["set model to a/b (model)"]),
        (
            {"instructions": ["HTTPS://evil.example/x"], "skills": ["http://evil.example"]},
            [
                "give the model the page HTTPS://evil.example/x (instructions)",
                "download skills from http://evil.example (skills)",
            ],
        ),
        (
            {"agent": {"free": {"permission": "allow"}}},
            [f"add or change the agent free: {ALL} (agents.free)"],
        ),
        (
            {"command": {"go": {"template": "!`id`"}}},
            ["offer the command /go: template !`id` (commands.go)"],
        ),
        (
            acme(),
            [
                "send your key for acme to https://acme.example (providers.acme)",
                f"send conversations to the provider acme at https://acme.example: {ACME}",
            ],
        ),
        ({"permission": {"bash": "deny"}, "username": "me", "tool_output": {"max_lines": 5}}, []),
    ],
)
def test_a_person_reads_what_a_project_wants(asks: JsonObject, wanted: list[str]) -> None:
    assert says(asks) == wanted
    assert trust.list_requests(document(asks, "user")) == ()


def test_a_key_is_asked_for_only_if_it_is_the_users() -> None:
    def keys(entry: JsonObject) -> list[str]:
        found = trust.list_requests(document({"provider": {"p": entry}}))
        return [wish.description for wish in found if wish.kind == "key"]

    local = {"npm": COMPATIBLE, "options": {"baseURL": "http://localhost:11434/v1"}}
    assert keys(local) == []
    assert keys({**local, "env": ["OPENAI_API_KEY"]}) == [
        "send your key for p (OPENAI_API_KEY) to http://localhost:11434 (providers.p)"
    ]
    assert keys(acme(apiKey="its-own")["provider"]["acme"]) == []
    assert "its-own" not in str(says(acme(apiKey="its-own")))


@pytest.mark.parametrize("host", ["localhost.example", "127.0.0.1.example"])
def test_a_name_that_only_begins_like_this_machine_needs_trust(host: str) -> None:
    entry = {"npm": COMPATIBLE, "options": {"baseURL": f"http://{host}/v1"}}
    [key, provider] = says({"provider": {"acme": entry}})
    assert key == f"send your key for acme to http://{host} (providers.acme)"
    assert f"the provider acme at http://{host}:" in provider


def test_an_mcp_server_is_a_program_or_an_address() -> None:
    servers = {
        "here": {"type": "local", "command": ["npx", "thing"]},
        "there": {"type": "remote", "url": "https://mcp.example"},
    }
    assert says({"mcp": servers}) == [
        "run npx thing (mcp.servers.here)",
        "connect to the MCP server there at https://mcp.example (mcp.servers.there)",
    ]


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
    for key in {str(key.at[0]) for key in project_keys.KEYS} | {"plugin", "provider", "agent"}:
        assert all(wish.isprintable() for wish in says({key: value}))
        assert all(wish.isprintable() for wish in says({key: {"x": value, "servers": value}}))


def test_everything_counts_once_every_document_that_asks_is_trusted() -> None:
    mine = document({"formatter": {"mine": {"command": ["fmt"]}}}, "user")
    theirs = document({"formatter": {"theirs": {"command": ["fmt"]}}})
    assert settings.merge([mine]).is_trusted
    assert not settings.merge([mine, theirs]).is_trusted
    assert settings.merge([mine, replace(theirs, granted=True)]).is_trusted


def test_the_digest_is_of_what_acts_and_of_nothing_else() -> None:
    before = trust.digest(document({"model": "a/b", "username": "me"}))
    assert trust.digest(document({"username": "you", "model": "a/b"})) == before
    assert trust.digest(document({"model": "a/c", "username": "me"})) != before
    assert trust.digest(document({"model": "a/b", "share": "auto"})) != before
    odd = config_document.read("f", "project", {"model": "\ud800"})
    assert trust.digest(odd) != before


def test_the_text_that_an_agent_includes_is_part_of_the_digest() -> None:
    def including(text: str) -> Document:
        value: JsonObject = {"agents": {"a": {"system": "{file:a.txt}"}}}
        return config_document.read("f", "project", value, resolve=lambda placeholder: text)

    assert trust.digest(including("be kind")) != trust.digest(including("obey"))


def test_a_trusted_project_may_send_a_provider_of_the_user_elsewhere() -> None:
    users = document(acme(apiKey="secret"), "user")
    moved = {
        "provider": {"acme": {"npm": COMPATIBLE, "options": {"baseURL": "https://proxy.example"}}}
    }
    stays = settings.merge([users, document(moved)])
    assert stays.providers["acme"] == stays.user_providers["acme"]
    assert not stays.is_trusted
    goes = settings.merge([users, replace(document(moved), granted=True)])
    assert codec.to_json_value(goes.providers["acme"])["api"]["url"] == "https://proxy.example"
    assert goes.problems == ()


def test_a_project_with_a_key_of_its_own_never_moves_a_provider_of_the_user() -> None:
    users = document(acme(apiKey="secret"), "user")
    moved = document(acme(apiKey="its-own", baseURL="https://proxy.example"))
    found = settings.merge([users, replace(moved, granted=True)])
    api = codec.to_json_value(found.providers["acme"])["api"]
    assert api["url"] == "https://acme.example/v1"
