"""Serving over the network, from bind to the last answer.

Who may reach the port is decided before it is opened: a server without a password is for this
machine only. Signals are wired here, so that every way of stopping is the graceful one.
"""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from typing import Final

from perdure.net import loopback
from perdure.server import app
from perdure.server.http.server import HttpServer
from perdure.server.services import Services
from perdure.server.settings import ServerSettings

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class UnsafeBindError(Exception):
    """Asked to listen to other machines without a password."""

    def __init__(self, host: str) -> None:
        super().__init__(f"refusing to listen on {host} without a password")


async def serve(
    services: Services,
    settings: ServerSettings,
    *,
    ready: Callable[[int], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Listen, call `ready` with the port, and serve until stopped.

    `stop` ends it; without one, SIGINT and SIGTERM do. OSError when the port cannot be had.
    """
    if not settings.password and not loopback.is_loopback_name(settings.host):
        raise UnsafeBindError(settings.host)
    application = app.make_app(services, settings)
    server = HttpServer(application, clock=services.clock, limits=settings.http)
    port = await server.start(settings.host, settings.port)
    try:
        with _stopped_by_signals() if stop is None else nullcontext(stop) as stopped:
            # Only now: who is told of the port may send a signal at once.
            ready(port)
            await stopped.wait()
    finally:
        application.begin_shutdown()
        await server.stop()


@contextmanager
def _stopped_by_signals() -> Generator[asyncio.Event]:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
