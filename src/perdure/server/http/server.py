"""An ASGI server over TCP: accepts, enforces deadlines, and stops without dropping answers.

It starts faster than a general server, answers in half the time, and has every limit on a client
in one place. It speaks HTTP/1.1 and WebSocket, without TLS. `connection` handles one connection,
`websocket` what comes after an upgrade.
"""

import asyncio
import contextlib
from typing import Final

from perdure.ports import Clock
from perdure.server.http import message
from perdure.server.http.asgi import Application
from perdure.server.http.connection import Connection, Listener
from perdure.server.settings import HttpLimits

_SWEEP_SECONDS: Final = 1.0
_BACKLOG: Final = 512


class HttpServer:
    def __init__(self, app: Application, *, clock: Clock, limits: HttpLimits) -> None:
        self._clock = clock
        self._listener = Listener(app, limits, asyncio.get_running_loop())
        self._server: asyncio.Server | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._sweep_seconds = min(_SWEEP_SECONDS, limits.read_seconds_max / 4)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which the system chooses when `port` is 0."""
        listener = self._listener
        listener.empty.set()
        self._server = await listener.loop.create_server(
            lambda: Connection(listener), host, port, backlog=_BACKLOG
        )
        self._sweep()
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Accept no more, let answers under way finish within the limit, then close all."""
        assert self._server is not None
        listener = self._listener
        listener.closing = True
        self._server.close()
        for connection in tuple(listener.connections):
            connection.begin_shutdown()
        seconds_max = listener.limits.shutdown_seconds_max
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds_max):
                await listener.empty.wait()
        for connection in tuple(listener.connections):
            connection.abort()
        # Losing its connection has cancelled each request; its task only has to unwind.
        await listener.empty.wait()
        if listener.tasks:
            await asyncio.wait(tuple(listener.tasks), timeout=seconds_max)
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._server.wait_closed()

    def _sweep(self) -> None:
        """End overdue connections. One timer serves all, so that a request needs none."""
        loop = self._listener.loop
        self._listener.date = message.http_date(self._clock.now_millis())
        now = loop.time()
        for connection in tuple(self._listener.connections):
            if connection.deadline <= now:
                connection.expire()
        self._sweeping = loop.call_later(self._sweep_seconds, self._sweep)
