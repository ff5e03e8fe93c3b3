"""MCP servers that an editor names: by name, or refused by place."""

import pytest

from perdure.acp.mcp_servers import read_servers
from perdure.acp.wire.rpc_error import RpcError
from perdure.core.limits import ACP_MCP_SERVERS_MAX
from perdure.schema.codec import JsonObject
from perdure.schema.settings.session_mcp import GivenMcpServer

LOCAL: JsonObject = {"name": "files", "command": "/bin/files", "args": ["."], "env": []}


def test_servers_are_read_by_name() -> None:
    header = {"name": "X-Team", "value": "core"}
    remote = {"type": "http", "name": "web", "url": "https://mcp.example/", "headers": [header]}
    variable = {"name": "A", "value": "1"}
    assert read_servers([{**LOCAL, "env": [variable]}, remote]) == {
        "files": GivenMcpServer(type="local", command=("/bin/files", "."), environment={"A": "1"}),
        "web": GivenMcpServer(
            type="remote", url="https://mcp.example/", headers={"X-Team": "core"}, oauth=False
        ),
    }
    assert read_servers(None) == {}


@pytest.mark.parametrize(
    "servers",
    [
        [{}],
        [{**LOCAL, "name": ""}],
        [LOCAL, LOCAL],
        [{**LOCAL, "command": ""}],
        [{**LOCAL, "command": "bin/files"}],
        [{**LOCAL, "args": "."}],
        [{**LOCAL, "env": {"A": "1"}}],
        [{"type": "sse", "name": "old", "url": "https://x", "headers": []}],
        [{"type": "http", "name": "web", "url": "file:///etc/passwd", "headers": []}],
        [{"type": 7, "name": "x"}],
        [{**LOCAL, "name": str(number)} for number in range(ACP_MCP_SERVERS_MAX + 1)],
    ],
)
def test_what_cannot_be_a_server_is_refused(servers: list[JsonObject]) -> None:
    with pytest.raises(RpcError) as raised:
        read_servers(servers)
    assert raised.value.code == -32602
