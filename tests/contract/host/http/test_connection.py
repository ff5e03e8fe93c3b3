"""How the bytes of an answer are handed to its reader: at once, or gathered."""

import asyncio

import pytest

from perdure.host.http.connection import GATHERED_BYTES_MAX, Connection
from perdure.net.transport import TransportError

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG = 3600.0


class Owner:
    def idle(self, connection: Connection) -> None: ...

    def lost(self, connection: Connection) -> None: ...


class Socket(asyncio.Transport):
    """The far end of a connection, which takes whatever is written."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def abort(self) -> None: ...


def answering(gather_seconds: float) -> Connection:
    """A connection whose request was sent and whose answer has begun."""
    connection = Connection(Owner(), gather_seconds=gather_seconds)
    connection.connection_made(Socket())
    connection.send((b"GET / HTTP/1.1\r\n\r\n",))
    connection.data_received(HEAD)
    return connection


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def read_first(connection: Connection) -> None:
    connection.data_received(chunk(b"first"))
    assert await connection.read() == b"first"


async def test_the_first_bytes_are_read_at_once() -> None:
    await read_first(answering(LONG))


async def test_bytes_that_follow_shortly_are_read_together() -> None:
    connection = answering(0.02)
    await read_first(connection)
    connection.data_received(chunk(b"a"))
    reader = asyncio.create_task(connection.read())
    await asyncio.sleep(0)
    connection.data_received(chunk(b"b"))
    assert await reader == b"ab"


@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "not-waiting"])
async def test_the_end_of_an_answer_is_read_at_once(waiting: bool) -> None:
    connection = answering(LONG)
    await read_first(connection)
    reader = asyncio.create_task(connection.read())
    if waiting:
        await asyncio.sleep(0)
    connection.data_received(chunk(b"last"))
    connection.data_received(b"0\r\n\r\n")
    assert await reader == b"last"
    assert await connection.read() == b""


async def test_many_bytes_are_read_at_once() -> None:
    connection = answering(LONG)
    await read_first(connection)
    reader = asyncio.create_task(connection.read())
    await asyncio.sleep(0)
    connection.data_received(chunk(b"x" * GATHERED_BYTES_MAX))
    assert len(await reader) == GATHERED_BYTES_MAX


@pytest.mark.parametrize("failure", [None, OSError("reset")], ids=["closed", "reset"])
async def test_a_lost_connection_gives_its_bytes_and_then_its_error(
    failure: OSError | None,
) -> None:
    connection = answering(LONG)
    await read_first(connection)
    connection.data_received(chunk(b"rest"))
    reader = asyncio.create_task(connection.read())
    await asyncio.sleep(0)
    connection.connection_lost(failure)
    assert await reader == b"rest"
    with pytest.raises(TransportError):
        await connection.read()


async def test_bytes_that_are_not_http_end_the_wait() -> None:
    connection = answering(LONG)
    await read_first(connection)
    connection.data_received(chunk(b"rest"))
    reader = asyncio.create_task(connection.read())
    await asyncio.sleep(0)
    connection.data_received(b"not a chunk\r\n")
    assert await reader == b"rest"
    with pytest.raises(TransportError):
        await connection.read()


async def test_an_answer_on_a_kept_connection_begins_at_once() -> None:
    connection = answering(LONG)
    await read_first(connection)
    connection.data_received(b"0\r\n\r\n")
    assert await connection.read() == b""
    connection.finish()
    connection.send((b"GET / HTTP/1.1\r\n\r\n",))
    connection.data_received(HEAD)
    await read_first(connection)
