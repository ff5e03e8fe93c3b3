"""What is said over a WebSocket that is connected to a terminal.

We send what is kept of the output as text, then one binary message, a zero byte and
`{"cursor":N}`, and from then on text as it is printed. The client sends what is typed. The end of
the program closes with 1000, our own shutdown with 1001, and a client that is too slow for the
terminal gets 1013: it may connect again with the cursor that it has come to. 4404 says that there
was no program any more.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.errors import PtyNotFoundError
from perdure.schema.files.pty import PtyExitedError
from perdure.server.http import websocket_frame
from perdure.server.http.websocket import Socket, Upgrade
from perdure.server.services import TerminalReader
from perdure.server.streams import StreamSettings

_CONTROL: Final = b"\0"
_ABSENT: Final = 4404


def connected(
    attach: Callable[[], AbstractContextManager[TerminalReader]], pace: StreamSettings
) -> Upgrade:
    async def run(socket: Socket) -> None:
        try:
            with attach() as reader:
                code, reason = await _conversation(socket, reader, pace)
        except PtyNotFoundError:
            code, reason = _ABSENT, "session not found"
        except PtyExitedError:
            code, reason = _ABSENT, "session exited"
        await socket.close(code, reason)

    return Upgrade(run)


async def _conversation(
    socket: Socket, reader: TerminalReader, pace: StreamSettings
) -> tuple[int, str]:
    """Until one side has no more to say; how to close."""
    async with asyncio.TaskGroup() as group:
        ends = {
            group.create_task(_print(socket, reader), name="terminal output"),
            group.create_task(_type(socket, reader), name="terminal input"),
            group.create_task(_wait(pace.closing), name="terminal closing"),
        }
        done = set[asyncio.Task[None]]()
        while not done:
            done, _ = await asyncio.wait(
                ends, timeout=pace.heartbeat_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                await socket.ping()
        for task in ends:
            task.cancel()
    if pace.closing.is_set():
        return websocket_frame.GOING_AWAY, "server is shutting down"
    if reader.lagged:
        return websocket_frame.TRY_AGAIN, "fell too far behind"
    return websocket_frame.NORMAL, ""


async def _print(socket: Socket, reader: TerminalReader) -> None:
    for piece in _pieces(reader.kept()):
        await socket.send(piece)
    await socket.send(_CONTROL + codec.encode({"cursor": reader.cursor}))
    while (text := await reader.next()) is not None:
        for piece in _pieces(text):
            await socket.send(piece)


async def _type(socket: Socket, reader: TerminalReader) -> None:
    while (message := await socket.receive()) is not None:
        data = message.encode() if isinstance(message, str) else message
        if _is_text(data):
            await reader.write(data)


async def _wait(closing: asyncio.Event) -> None:
    await closing.wait()


def _pieces(text: str) -> Iterator[str]:
    size = limits.PTY_FRAME_CHARS_MAX
    return (text[begin : begin + size] for begin in range(0, len(text), size))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
