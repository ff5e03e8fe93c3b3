"""Files, commands and terminals through the client, over a socket and in memory."""

from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from perdure.client import WireClient, WireError
from perdure.client.blocking_wire import BlockingWireClient
from perdure.client.client import Client
from perdure.schema.ids import PtyID
from tests.contract.client.hosts import OpenClient, in_memory, over_network
from tests.support.websocket import connected


@pytest.fixture(params=[over_network, in_memory], ids=["network", "memory"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[WireClient]:
    opens: OpenClient = request.param
    async with opens(tmp_path) as opened:
        yield opened


async def test_files_are_read_listed_and_found(client: WireClient, tmp_path: Path) -> None:
    place = tmp_path / "a b"
    (place / "sub").mkdir(parents=True)
    (place / "sub" / "50%.bin").write_bytes(b"\xff\x00")
    where = str(place)
    assert await client.files.read("sub/50%.bin", directory=where) == b"\xff\x00"
    assert await client.files.list(directory=where) == ({"path": "sub/", "type": "directory"},)
    assert [entry["path"] for entry in await client.files.list("sub", directory=where)] == [
        "sub/50%.bin"
    ]
    found = await client.files.find("50", type="file", limit=1, directory=where)
    assert found == ({"path": "sub/50%.bin", "type": "file"},)
    with pytest.raises(WireError) as raised:
        await client.files.read("none", directory=where)
    assert (raised.value.tag, raised.value.status) == ("NotFoundError", 404)


async def test_commands_are_listed(client: WireClient) -> None:
    assert {"init", "review"} <= {command["name"] for command in await client.commands.list()}


async def test_a_terminal_is_started_changed_and_removed(
    client: WireClient, tmp_path: Path
) -> None:
    where = str(tmp_path)
    made = await client.terminals.create(
        "/bin/sh", ("-c", "sleep 60"), title="one", env={"A": "b"}, directory=where
    )
    assert await client.terminals.get(made["id"], directory=where) == made
    changed = await client.terminals.update(
        made["id"], title="two", size={"rows": 10, "cols": 20}, directory=where
    )
    assert changed == {**made, "title": "two"}
    assert await client.terminals.list(directory=where) == (changed,)
    ticket = await client.terminals.connect_token(made["id"], directory=where)
    assert ticket["expires_in"] == 60
    address = client.terminals.connect_url(made["id"], ticket="a b", cursor=-1, directory=where)
    assert address.startswith("ws://")
    assert urlsplit(address).path == f"/api/pty/{made['id']}/connect"
    asked = [("ticket", "a b"), ("cursor", "-1"), ("location[directory]", where)]
    assert parse_qsl(urlsplit(address).query) == asked
    await client.terminals.remove(made["id"], directory=where)
    with pytest.raises(WireError) as raised:
        await client.terminals.remove(made["id"], directory=where)
    assert raised.value.tag == "PtyNotFoundError"


async def test_the_address_of_a_terminal_is_where_it_is_typed_into(tmp_path: Path) -> None:
    script = 'stty -echo; read -r line; echo "<$line>"; sleep 60'
    async with over_network(tmp_path) as client:
        made = await client.terminals.create("/bin/sh", ("-c", script))
        ticket = (await client.terminals.connect_token(made["id"]))["ticket"]
        address = urlsplit(client.terminals.connect_url(made["id"], ticket=ticket))
        assert address.port is not None
        async with connected(address.port, f"{address.path}?{address.query}") as socket:
            await socket.say("hello\n")
            assert "<hello>" in await socket.until(">")
        await client.terminals.remove(made["id"])


@pytest.mark.parametrize(
    "base", ["https://perdure.invalid/below/", "HTTPS://perdure.invalid/below"]
)
async def test_every_client_spells_the_address_of_a_terminal_alike(base: str) -> None:
    path = "wss://perdure.invalid/below/api/pty/pty_a%2Fb/connect"
    expected = f"{path}?cursor=0&location%5Bdirectory%5D=%2Fx+y"
    plain, decoded = WireClient(base), Client(base)
    assert plain.terminals.connect_url("pty_a/b", cursor=0, directory="/x y") == expected
    assert decoded.terminals.connect_url(PtyID("pty_a/b"), cursor=0, directory="/x y") == expected


def test_the_client_without_a_loop_knows_the_address_of_a_terminal() -> None:
    with BlockingWireClient("http://127.0.0.1:1") as client:
        found = client.terminals.connect_url("pty_1", ticket="t")
    assert found == "ws://127.0.0.1:1/api/pty/pty_1/connect?ticket=t"
