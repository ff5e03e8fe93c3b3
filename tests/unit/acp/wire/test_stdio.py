"""Lines over descriptors: pipes, sockets and files; clients that do not read, or are gone."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from perdure.acp.wire.stdio import StdioLines
from perdure.core.limits import ACP_UNSENT_BYTES_MAX

PATIENCE_SECONDS = 10


async def _read(stream: StdioLines) -> list[object]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [line async for line in stream.lines()]


async def test_lines_come_from_a_file_and_go_to_one(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"one\ntwo\n")
    with source.open("rb") as reading, target.open("wb") as writing:
        stream = StdioLines(reading.fileno(), writing.fileno())
        assert await _read(stream) == [b"one", b"two"]
        await stream.write(b"answer")
        await stream.flush()
    assert target.read_bytes() == b"answer\n"


async def test_one_socket_can_be_both_ways() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = StdioLines(theirs.fileno(), theirs.fileno())
        ours.sendall(b"one\n")
        ours.shutdown(socket.SHUT_WR)
        assert await _read(stream) == [b"one"]
        await stream.write(b"answer")
        await stream.flush()
        assert ours.recv(100) == b"answer\n"


async def test_a_client_that_does_not_read_stops_the_writer_and_not_the_loop() -> None:
    (source, keep), (reading, target) = os.pipe(), os.pipe()
    stream = StdioLines(source, target)
    line = b"x" * (ACP_UNSENT_BYTES_MAX + 1)
    await stream.write(line)
    waiting = asyncio.create_task(stream.write(b"next"))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert done == set()
    received = await asyncio.to_thread(_receive, reading, len(line) + len(b"\nnext\n"))
    assert received == line + b"\nnext\n"
    async with asyncio.timeout(PATIENCE_SECONDS):
        await waiting
        await stream.flush()
    for descriptor in (keep, source, reading):
        os.close(descriptor)


async def test_a_client_that_is_gone_ends_the_lines() -> None:
    (source, keep), (reading, target) = os.pipe(), os.pipe()
    os.close(reading)
    stream = StdioLines(source, target)
    await stream.write(b"to no reader")
    assert await _read(stream) == []
    await stream.write(b"and another")
    os.close(keep)
    os.close(target)


@pytest.mark.parametrize("chunk", [b"a\n" * 200_000])
async def test_many_lines_at_once_are_all_read(chunk: bytes) -> None:
    source, target = os.pipe()
    stream = StdioLines(source, os.open(os.devnull, os.O_WRONLY))
    sending = asyncio.create_task(asyncio.to_thread(_send, target, chunk))
    assert len(await _read(stream)) == 200_000
    await sending
    os.close(source)


def _receive(source: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += os.read(source, 1 << 20)
    return data


def _send(target: int, data: bytes) -> None:
    with os.fdopen(target, "wb") as writing:
        writing.write(data)
