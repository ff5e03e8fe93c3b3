"""Which MCP servers a Location has, by what its documents say together."""

from typing import Final

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.config_file.mcp_entries import McpOauthEntry
from perdure.core.config_file.substitution import Trust
from perdure.core.settings import document as config_document
from perdure.core.settings import mcp_servers, settings
from perdure.core.settings.document import Document
from perdure.core.settings.mcp_servers import McpAddress, McpProgram, McpServer, McpSettings
from perdure.schema.codec import JsonObject, JsonValue

LOCAL: Final[JsonObject] = {"type": "local", "command": ["npx", "thing"]}
REMOTE: Final[JsonObject] = {"type": "remote", "url": "https://mcp.example/mcp"}


def document(value: JsonObject, *, trust: Trust = "user", granted: bool = False) -> Document:
    read = config_document.read(f"/{trust}/opencode.json", trust, value)
    return replace(read, granted=granted)


def configured(*documents: Document) -> McpSettings:
    return mcp_servers.configured_servers(documents)


def only(entry: JsonObject, **section: JsonValue) -> McpServer:
    (server,) = configured(document({"mcp": {"servers": {"s": entry}, **section}})).servers
    return server


def test_a_local_server_is_read_as_it_was_written() -> None:
    found = only({**LOCAL, "environment": {"A": "secret"}, "cwd": "sub", "disabled": True})
    assert found.target == McpProgram(
        command=("npx", "thing"), directory="sub", environment={"A": "secret"}
    )
    assert found.disabled
    assert not found.of_project
    assert "secret" not in repr(found)
    assert "secret" not in repr(found.target)


def test_a_remote_server_is_read_as_it_was_written() -> None:
    oauth: JsonObject = {"client_id": "i", "scope": "a b", "callback_port": 9}
    found = only({**REMOTE, "headers": {"X-Key": "k"}, "oauth": oauth})
    assert found.target == McpAddress(
        url="https://mcp.example/mcp",
        headers={"X-Key": "k"},
        oauth=McpOauthEntry(client_id="i", scope="a b", callback_port=9),
    )
    assert only(REMOTE).target == McpAddress(url="https://mcp.example/mcp")
    off = only({**REMOTE, "oauth": False}).target
    assert isinstance(off, McpAddress)
    assert off.oauth is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"mcp": {"s": {**LOCAL, "enabled": False}}}, True),
        ({"mcp": {"s": {**LOCAL, "enabled": True}}}, False),
        ({"mcp": {"servers": {"s": {**LOCAL, "disabled": True}}}}, True),
        ({"mcp": {"s": LOCAL}}, False),
    ],
)
def test_both_forms_switch_a_server_off(written: JsonObject, expected: bool) -> None:
    (found,) = configured(document(written)).servers
    assert found.disabled is expected


@pytest.mark.parametrize(
    ("general", "own", "expected"),
    [
        (None, None, (limits.MCP_STARTUP_SECONDS, limits.MCP_REQUEST_SECONDS)),
        (5_000, None, (5, 5)),
        ({"startup": 7_000, "request": 90_000}, None, (7, 90)),
        ({"startup": 7_000}, 1_000, (1, 1)),
        ({"startup": 7_000}, {"request": 2_000}, (7, 2)),
        (10**15, None, (limits.MCP_TIMEOUT_SECONDS_MAX, limits.MCP_TIMEOUT_SECONDS_MAX)),
    ],
)
def test_timeouts_are_a_number_or_an_object(
    general: JsonValue, own: JsonValue, expected: tuple[float, float]
) -> None:
    section = {} if general is None else {"timeout": general}
    found = only(LOCAL if own is None else {**LOCAL, "timeout": own}, **section)
    assert (found.startup_seconds, found.request_seconds) == expected


def test_the_timeout_of_the_older_form_counts() -> None:
    written: JsonObject = {"mcp": {"s": LOCAL}, "experimental": {"mcp_timeout": 4_000}}
    (found,) = configured(document(written)).servers
    assert found.startup_seconds == found.request_seconds == 4


@pytest.mark.parametrize(
    "entry",
    [
        3,
        None,
        [],
        "npx thing",
        {},
        {"type": "telepathy"},
        {"type": "local"},
        {"type": "local", "command": []},
        {"type": "local", "command": [""]},
        {"type": "local", "command": "npx thing"},
        {"type": "local", "command": ["a", 3]},
        {"type": "local", "command": ["a\0b"]},
        {"type": "local", "command": ["a", "\ud800x"]},
        {**LOCAL, "cwd": "a\0b"},
        {**LOCAL, "cwd": 3},
        {**LOCAL, "environment": {"A": 1}},
        {**LOCAL, "environment": {"": "x"}},
        {**LOCAL, "environment": {"A=B": "x"}},
        {**LOCAL, "environment": {"A": "x\0y"}},
        {**LOCAL, "environment": []},
        {**LOCAL, "disabled": "yes"},
        {**LOCAL, "timeout": 0},
        {**LOCAL, "timeout": -5},
        {**LOCAL, "timeout": "5s"},
        {**LOCAL, "timeout": {"startup": 0}},
        {"type": "remote"},
        {"type": "remote", "url": ""},
        {"type": "remote", "url": "file:///etc/passwd"},
        {"type": "remote", "url": "javascript:alert(1)"},
        {"type": "remote", "url": "https://"},
        {"type": "remote", "url": "https://a.example:99999/"},
        {"type": "remote", "url": "https://[::1/"},
        {"type": "remote", "url": "https://a.example/ b"},
        {"type": "remote", "url": "https://a.example/\r\nX: y"},
        {"type": "remote", "url": "https://user:secret@a.example/"},
        {**REMOTE, "headers": {"A": "b\r\nC: d"}},
        {**REMOTE, "headers": {"A b": "c"}},
        {**REMOTE, "headers": {"": "c"}},
        {**REMOTE, "headers": {"A": 3}},
        {**REMOTE, "oauth": True},
        {**REMOTE, "oauth": {"client_id": 3}},
        {**REMOTE, "oauth": {"callback_port": -1}},
    ],
    ids=repr,
)
def test_a_server_that_cannot_be_used_is_left_out_alone_and_reported(entry: JsonValue) -> None:
    written: JsonObject = {"mcp": {"servers": {"bad": entry, "good": LOCAL}}}
    found = settings.merge((document(written),))
    assert [server.name for server in found.mcp.servers] == ["good"]
    if entry == {}:
        # It says nothing about a server that no other document names.
        assert found.problems == ()
        return
    (problem,) = found.problems
    assert "`mcp.servers.bad`" in problem.message
    assert "secret" not in problem.shown


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J", "x" * 101, "\u202ea"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    found = configured(document({"mcp": {"servers": {name: LOCAL}}}))
    assert found.servers == ()
    assert len(found.problems) == 1


@pytest.mark.parametrize("value", [3, [], "x", {"servers": 3}, {"servers": []}, {"timeout": "x"}])
def test_a_section_of_another_shape_is_reported_and_loses_nothing_else(value: JsonValue) -> None:
    found = settings.merge((document({"mcp": value, "model": "p/m"}),))
    assert found.mcp.servers == ()
    assert len(found.problems) == 1
    assert found.model is not None


def test_more_servers_than_a_location_may_have_are_reported() -> None:
    names = [f"s{number:03}" for number in range(limits.MCP_SERVERS_MAX + 2)]
    found = configured(document({"mcp": {"servers": dict.fromkeys(names, LOCAL)}}))
    assert len(found.servers) == limits.MCP_SERVERS_MAX
    assert len(found.problems) == 2


def test_later_documents_complete_earlier_ones() -> None:
    first = document({"mcp": {"s": {**LOCAL, "environment": {"A": "1", "B": "2"}}}})
    second = document({"mcp": {"s": {"environment": {"B": "3"}, "enabled": False}}})
    (found,) = configured(first, second).servers
    assert found.target == McpProgram(command=("npx", "thing"), environment={"A": "1", "B": "3"})
    assert found.disabled
    (other,) = configured(first, document({"mcp": {"s": REMOTE}})).servers
    assert other.target == McpAddress(url="https://mcp.example/mcp")


def test_servers_of_a_project_wait_for_trust_and_are_its_own() -> None:
    mine = document({"mcp": {"mine": LOCAL}})
    asked: JsonObject = {"mcp": {"theirs": LOCAL, "mine": {"enabled": False}}}
    before = configured(mine, document(asked, trust="project"))
    assert [(one.name, one.disabled) for one in before.servers] == [("mine", False)]
    assert before.untrusted == ("theirs",)
    after = configured(mine, document(asked, trust="project", granted=True))
    assert [(one.name, one.disabled, one.of_project) for one in after.servers] == [
        ("mine", True, False),
        ("theirs", False, True),
    ]
    assert after.untrusted == ()


@pytest.mark.parametrize(
    "theirs",
    [{"type": "local", "command": ["./evil"]}, {"command": ["./evil"]}],
)
def test_a_project_gets_nothing_of_what_the_user_says_to_a_server(theirs: JsonObject) -> None:
    mine = document({"mcp": {"s": {**LOCAL, "environment": {"TOKEN": "secret"}}}})
    project = document({"mcp": {"servers": {"s": theirs}}}, trust="project", granted=True)
    found = configured(mine, project)
    assert all(one.target == McpProgram(command=("./evil",)) for one in found.servers)
    assert all(one.of_project for one in found.servers)


def test_a_server_is_known_again_by_what_is_started_and_not_by_its_secrets() -> None:
    one = only({**LOCAL, "environment": {"TOKEN": "a"}})
    assert one.digest == only({**LOCAL, "environment": {"TOKEN": "b"}, "timeout": 9}).digest
    others = (
        only({**LOCAL, "environment": {"OTHER": "a"}}),
        only({**LOCAL, "command": ["npx", "thing", "x"]}),
        only({**LOCAL, "cwd": "x"}),
        only(REMOTE),
    )
    assert len({one.digest, *(other.digest for other in others)}) == 5


def test_the_number_above_which_tools_are_searched_is_a_setting() -> None:
    assert configured().search_above == limits.MCP_TOOLS_OFFERED_MAX
    assert configured(document({"experimental": {"mcp_search": 7}})).search_above == 7
