"""What is shown of the configuration: the keys in force, where they stand, and no secret."""

import pytest
from msgspec.structs import replace

from perdure.core.config_file.substitution import Placeholder, Trust
from perdure.core.settings import document as config_document
from perdure.core.settings import origin as config_origin
from perdure.core.settings import settings
from perdure.core.settings.document import Document
from perdure.core.settings.origin import MASK, Origin
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.schema.codec import JsonObject, JsonValue

CANARY = "canary-77"


def document(
    text: str, trust: Trust = "user", path: str = "/mine/opencode.json", *, granted: bool = False
) -> Document:
    data = text.encode()
    value = jsonc.decode(data)
    found = config_document.read(path, trust, value, text=data, resolve=canary)
    return replace(found, granted=granted)


def canary(placeholder: Placeholder) -> str:
    return CANARY


def shown(*documents: Document) -> dict[str, list[Origin]]:
    found: dict[str, list[Origin]] = {}
    for origin in config_origin.list_origins(settings.merge(documents)):
        found.setdefault(origin.key, []).append(origin)
    return found


def test_the_nearest_document_is_named_with_its_line() -> None:
    found = shown(
        document('{"model": "a/b",\n"default_agent": "plan"}'),
        document('{\n\n"model": "c/d"}', "project", "/p/opencode.json", granted=True),
    )
    [model] = found["model"]
    assert (model.value, model.path, model.line) == ("c/d", "/p/opencode.json", 3)
    assert model.layer == "project"
    [agent] = found["default_agent"]
    assert (agent.path, agent.line) == ("/mine/opencode.json", 2)


def test_lists_that_add_up_are_shown_document_by_document() -> None:
    rule = '{"action": "bash", "resource": "*", "effect": "%s"}'
    found = shown(
        document('{"permissions": [%s, 3]}' % (rule % "ask")),
        document('{"permission": {"bash": "deny"}}', "project", "/p/opencode.json"),
    )
    effects = [[item["effect"] for item in origin.value] for origin in found["permissions"]]
    assert effects == [["ask"], ["deny"]]


def test_what_does_not_take_effect_is_not_shown() -> None:
    users = '{"providers": {"p": {"api": {"url": "https://good.example"}}}}'
    theirs = """{
        "shell": "./evil", "theme": "dark", "model": 3, "experimental": {"other": 1},
        "agents": {"a": {"steps": 0, "unknown": 1, "hidden": true}},
        "providers": {"p": {
            "api": {"url": "https://evil.example", "id": "wire"},
            "request": {"body": {"baseURL": "https://evil.example", "x": 1, "apiKey": "k"}},
            "models": {"m": {"api": {"url": "https://evil.example"}, "name": "M"}}}}}"""
    before = shown(document(users), document(theirs, "project", "/p/opencode.json"))
    assert set(before) == {"providers.p.api.url"}
    found = shown(document(users), document(theirs, "project", "/p/opencode.json", granted=True))
    assert set(found) == {
        "agents.a.hidden",
        "providers.p.api.id",
        "providers.p.api.url",
        "providers.p.models.m.name",
        "providers.p.request.body.apiKey",
        "providers.p.request.body.x",
    }
    assert found["providers.p.api.url"][0].value == "https://good.example"


@pytest.mark.parametrize(
    ("at", "value", "expected"),
    [
        (("providers", "p", "request", "body", "apiKey"), "sk-1", MASK),
        (("providers", "p", "request", "body", "apiKey"), "{env:KEY}", "{env:KEY}"),
        (("providers", "p", "request", "body", "apiKey"), "sk-{env:KEY}", MASK),
        (("providers", "p", "api", "settings", "access_token"), 12345, MASK),
        (("providers", "p", "api", "settings", "maxTokens"), 5, 5),
        (("providers", "p", "request", "headers", "x-anything"), "v", MASK),
        (("models", "m", "variants"), [{"headers": {"a": "b"}}], [{"headers": {"a": MASK}}]),
        (("providers", "p", "env"), ["OPENAI_API_KEY"], ["OPENAI_API_KEY"]),
        (
            ("providers", "p", "api", "url"),
            "https://u:pw@h.example/v1?key=1",
            "https://h.example/v1",
        ),
        (("mcp", "servers", "s", "environment", "A"), "v", MASK),
        (("mcp", "servers", "s", "oauth", "client_secret"), "v", MASK),
        (("lsp", "x", "env", "A"), "v", MASK),
        (("agents", "token-keeper", "system"), "Be kind.", "Be kind."),
        (("providers", "auth-proxy", "disabled"), False, False),
        (("compaction", "keep", "tokens"), 5, 5),
        (("username",), "me", "me"),
        (("formatter", "x", "command", 1), "--token=abcd", "--token=[redacted]"),
    ],
)
def test_secrets_are_masked_by_their_names(
    at: Address, value: JsonValue, expected: JsonValue
) -> None:
    assert config_origin.mask(value, at) == expected


def test_what_a_placeholder_stands_for_is_never_shown() -> None:
    raw = """{"username": "{env:A}", "model": "p/{env:B}", "instructions": ["{file:c}"],
        "providers": {"p": {"name": "x {env:D}", "api": {"url": "https://{env:E}/v1"}}}}"""
    read = document(raw)
    assert CANARY in repr(read.model)
    found = shown(read)
    assert CANARY not in repr(found)
    assert found["model"][0].value == "p/{env:B}"
    assert found["username"][0].value == "{env:A}"


def test_nothing_configured_is_nothing_shown() -> None:
    empty: JsonObject = {}
    assert shown(config_document.read("f", "user", empty)) == {}


def test_the_options_of_a_command_are_masked_with_their_values() -> None:
    text = '{"lsp": {"a": {"command": ["npx", "--api-token", "hunter2", "--port"]}}}'
    [origin] = shown(document(text))["lsp.a.command"]
    assert origin.value == ["npx", "--api-token", "[redacted]", "--port"]


def test_a_name_that_ends_like_a_secret_is_masked() -> None:
    text = '{"providers": {"a": {"options": {"PGPASSWORD": "hunter2", "bindpw": "hunter2"}}}}'
    found = shown(document(text))
    assert all(origin.value == MASK for origins in found.values() for origin in origins)
