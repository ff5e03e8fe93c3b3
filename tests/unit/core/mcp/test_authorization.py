"""Where a remote MCP server wants a login, by the documents that it publishes."""

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.config_file.mcp_entries import McpOauthEntry
from perdure.core.credentials import oauth
from perdure.core.mcp import authorization
from perdure.core.mcp.authorization import McpLoginError
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

URL = "https://mcp.example/team/mcp"


def test_the_documents_of_a_server_are_looked_for_where_the_standards_say() -> None:
    challenge = 'Bearer error="x", resource_metadata="https://mcp.example/meta"'
    assert authorization.resource_urls(URL, challenge) == (
        "https://mcp.example/meta",
        "https://mcp.example/.well-known/oauth-protected-resource/team/mcp",
        "https://mcp.example/.well-known/oauth-protected-resource",
    )
    assert authorization.issuer_urls("https://login.example/tenant") == (
        "https://login.example/.well-known/oauth-authorization-server/tenant",
        "https://login.example/.well-known/openid-configuration/tenant",
        "https://login.example/tenant/.well-known/openid-configuration",
    )


@pytest.mark.parametrize(
    "address",
    ["http://169.254.169.254/latest", "file:///etc/passwd", "javascript:x", "//", "https://[", ""],
)
def test_an_unsafe_address_is_never_asked(address: str) -> None:
    challenge = f'Bearer resource_metadata="{address}"'
    assert all(
        url.startswith("https://mcp.example/")
        for url in authorization.resource_urls(URL, challenge)
    )
    named: JsonObject = {"authorization_servers": [address]}
    assert authorization.read_issuer(named, URL) == "https://mcp.example"
    server = authorization.read_server({"registration_endpoint": address}, "https://a.example")
    assert server.registration_url is None


@pytest.mark.parametrize("metadata", [None, [], 3, {}, {"authorization_servers": 3}])
def test_without_metadata_the_server_logs_in_itself(metadata: JsonValue) -> None:
    assert authorization.read_issuer(metadata, URL) == "https://mcp.example"
    server = authorization.read_server(None, "https://mcp.example")
    assert server.authorize_url == "https://mcp.example/authorize"
    assert server.token_url == "https://mcp.example/token"
    assert server.registration_url == "https://mcp.example/register"


def test_a_login_names_the_resource_and_returns_to_this_machine() -> None:
    server = authorization.read_server(
        {
            "authorization_endpoint": "https://login.example/a",
            "token_endpoint": "https://login.example/t",
            "scopes_supported": ["read", 3],
        },
        "https://login.example",
    )
    entry = McpOauthEntry(callback_port=8123)
    method = authorization.make_method(server, entry, client_id="me", url=f"{URL}/?x=1")
    assert method.redirect_url == "http://127.0.0.1:8123/mcp/oauth/callback"
    assert method.returns_here
    url = oauth.authorize_url(method, state="s", verifier="v", redirect="r", inputs={})
    asked = parse_qs(urlsplit(url).query)
    assert asked["resource"] == [URL]
    assert asked["scope"] == ["read"]
    body = codec.decode_any(authorization.registration_body(McpOauthEntry(scope="a b")))
    assert body["redirect_uris"] == ["http://127.0.0.1:19876/mcp/oauth/callback"]
    assert body["scope"] == "a b"


@pytest.mark.parametrize(
    "metadata",
    [
        {"authorization_endpoint": "http://a.example/a", "token_endpoint": "https://a.example/t"},
        {"authorization_endpoint": "https://a.example/a", "token_endpoint": "ftp://a.example/t"},
        {"authorization_endpoint": "https://u:p@a.example/", "token_endpoint": "https://a.example"},
    ],
)
def test_a_login_that_is_not_safe_is_refused_in_words(metadata: JsonObject) -> None:
    server = authorization.read_server(metadata, "https://a.example")
    with pytest.raises(McpLoginError):
        authorization.make_method(server, McpOauthEntry(), client_id="me", url=URL)


@pytest.mark.parametrize(
    ("status", "body"),
    [(400, b"{}"), (201, b""), (201, b"[]"), (201, b'{"client_id": 3}'), (200, b"\xff")],
)
def test_a_registration_that_failed_says_what_to_set(status: int, body: bytes) -> None:
    with pytest.raises(McpLoginError, match="client_id"):
        authorization.read_registration(status, body)
    assert authorization.read_registration(201, b'{"client_id": "me"}') == "me"


def test_logins_are_kept_by_origin() -> None:
    assert authorization.integration_id("HTTPS://MCP.example:443/a") == "mcp:https://mcp.example"
    assert authorization.integration_id(URL) == authorization.integration_id(
        "https://mcp.example/other"
    )
    assert authorization.integration_id(URL) != authorization.integration_id("http://mcp.example")


json_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "authorization_endpoint",
                "token_endpoint",
                "registration_endpoint",
                "scopes_supported",
                "authorization_servers",
            ]
        ),
        json_values,
    ),
    st.text(max_size=20),
)
def test_reading_never_fails(metadata: JsonObject, challenge: str) -> None:
    authorization.resource_urls(URL, challenge)
    issuer = authorization.read_issuer(metadata, URL)
    authorization.issuer_urls(issuer)
    authorization.read_server(metadata, issuer)
