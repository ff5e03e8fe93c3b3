"""Serves the app over the network, from opening the port to the last answer.

Without a password the server listens on this machine only. SIGINT and SIGTERM stop it gracefully.
"""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from perdure.core import limits
from perdure.host import descriptors
from perdure.net import loopback
from perdure.server import app
from perdure.server.http.server import HttpServer
from perdure.server.settings import ServerSettings

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class UnsafeBindError(Exception):
    """The server was asked to listen to other machines without a password."""

    def __init__(self, host: str) -> None:
        super().__init__(f"refusing to listen on {host} without a password")


async def serve(
    runtime: "Runtime",
    settings: ServerSettings,
    *,
    ready: Callable[[int], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Listen, call `ready` with the port, and serve until stopped.

    `stop` ends it; without one, SIGINT and SIGTERM do. Raises UnsafeBindError, and OSError when the
    port cannot be opened.
    """
    if not settings.password and not loopback.is_loopback_name(settings.host):
        raise UnsafeBindError(settings.host)
    settings = _within_descriptors(settings)
    application = app.make_app(runtime, settings)
    server = HttpServer(application, clock=runtime.clock, limits=settings.http)
    port = await server.start(settings.host, settings.port)
    try:
        with _stopped_by_signals() if stop is None else nullcontext(stop) as stopped:
            # Only now: a process that is told the port may send a signal at once.
            ready(port)
            await stopped.wait()
    finally:
        # Before the answers under way are waited for: those to `wait` end only with the runs.
        runtime.coordinator.begin_closing()
        application.begin_shutdown()
        await server.stop()


def _within_descriptors(settings: ServerSettings) -> ServerSettings:
    """The settings with no more connections than this process may have descriptors for."""
    connections = min(settings.http.connections_max, descriptors.connections_max())
    streams = connections * limits.STREAMS_PERCENT_MAX // 100
    return replace(
        settings,
        http=replace(settings.http, connections_max=connections),
        streams_max=min(settings.streams_max, streams),
    )


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
