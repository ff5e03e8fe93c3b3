"""The messages of a WebSocket that is connected to a terminal.

The server sends the kept output as text, then one binary message, a zero byte and `{"cursor":N}`,
and from then on text as it is printed. The client sends what the user types. The socket is closed
with 1000 when the program ends, with 1001 when the server shuts down, and with 1013 when the client
reads too slowly; it may connect again with the cursor that it has come to. 4404 means that the
program had ended before.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.errors import PtyNotFoundError
from perdure.schema.files.pty import PtyExitedError
from perdure.server.http import websocket_frame
from perdure.server.http.websocket import Socket, Upgrade
from perdure.server.streams import StreamSettings

if TYPE_CHECKING:
    from perdure.location.workspace.terminals import Attachment

_CONTROL: Final = b"\0"
_ABSENT: Final = 4404


def connect(
    attach: Callable[[], AbstractContextManager["Attachment"]], settings: StreamSettings
) -> Upgrade:
    async def run(socket: Socket) -> None:
        try:
            with attach() as reader:
                code, reason = await _relay(socket, reader, settings)
        except PtyNotFoundError:
            code, reason = _ABSENT, "session not found"
        except PtyExitedError:
            code, reason = _ABSENT, "session exited"
        await socket.close(code, reason)

    return Upgrade(run)


async def _relay(socket: Socket, reader: "Attachment", settings: StreamSettings) -> tuple[int, str]:
    """Carry output and input until one side ends; the code and reason to close with."""
    async with asyncio.TaskGroup() as group:
        ends = {
            group.create_task(_send_output(socket, reader), name="terminal output"),
            group.create_task(_send_input(socket, reader), name="terminal input"),
            group.create_task(_wait(settings.closing), name="terminal closing"),
        }
        done = set[asyncio.Task[None]]()
        while not done:
            done, _ = await asyncio.wait(
                ends, timeout=settings.heartbeat_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                await socket.ping()
        for task in ends:
            task.cancel()
    if settings.closing.is_set():
        return websocket_frame.GOING_AWAY, "server is shutting down"
    if reader.lagged:
        return websocket_frame.TRY_AGAIN, "fell too far behind"
    return websocket_frame.NORMAL, ""


async def _send_output(socket: Socket, reader: "Attachment") -> None:
    for piece in _pieces(reader.kept()):
        await socket.send(piece)
    await socket.send(_CONTROL + codec.encode({"cursor": reader.cursor}))
    while (text := await reader.next()) is not None:
        for piece in _pieces(text):
            await socket.send(piece)


async def _send_input(socket: Socket, reader: "Attachment") -> None:
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
