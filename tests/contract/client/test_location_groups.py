"""Files, commands and terminals through the client, over a socket and in memory."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.client import DeclaredError, PerdureClient
from tests.contract.client.hosts import OpenClient, in_memory, over_network


@pytest.fixture(params=[over_network, in_memory], ids=["network", "memory"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[PerdureClient]:
    opens: OpenClient = request.param
    async with opens(tmp_path) as opened:
        yield opened


async def test_files_are_read_listed_and_found(client: PerdureClient, tmp_path: Path) -> None:
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
    with pytest.raises(DeclaredError) as raised:
        await client.files.read("none", directory=where)
    assert (raised.value.tag, raised.value.status) == ("NotFoundError", 404)


async def test_commands_are_listed(client: PerdureClient) -> None:
    assert {"init", "review"} <= {command["name"] for command in await client.commands.list()}


async def test_a_terminal_is_started_changed_and_removed(
    client: PerdureClient, tmp_path: Path
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
    await client.terminals.remove(made["id"], directory=where)
    with pytest.raises(DeclaredError) as raised:
        await client.terminals.remove(made["id"], directory=where)
    assert raised.value.tag == "PtyNotFoundError"
