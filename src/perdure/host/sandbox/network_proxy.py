"""The filtering proxy: serves the listeners that launchers of commands hand over.

A launcher connects to a local socket of this process, and sends the token of its command with a
listener that is inside the command's network (host.sandbox.proxy_listener). The listener is served
until the launcher's connection ends, which is when the last process of the command has ended.

Invariant: a token counts once. A command inside cannot reach the local socket: the sandbox refuses
such sockets.
"""

import asyncio
import errno
import os
import secrets
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from perdure.core import limits
from perdure.host import descriptors
from perdure.host.http import proxy as http_proxy
from perdure.host.http.proxy import ProxyRules
from perdure.host.http.web_pages import Resolve, system_resolve
from perdure.host.sandbox import private_directory, proxy_listener
from perdure.host.sandbox.proxied_connection import ProxiedConnection
from perdure.host.sandbox.proxy_dial import Dialer
from perdure.ports.sandbox import HostAccess
from perdure.schema.value import Value

Start = Callable[[Coroutine[Any, Any, None]], None]
"""Runs work in the background, and cancels it when the program ends."""

_PREFIX: Final = "network-"
_TOKEN_BYTES_MAX: Final = 64
_WAITING_MAX: Final = 256
"""Command lines that were made and have not been started; older ones have no network."""
_BACKLOG: Final = 64
_OFFER_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.1


class NetworkProxy:
    """One for the process. Nothing is opened before the first command that needs it."""

    def __init__(
        self,
        directory: str,
        *,
        start: Start,
        resolve: Resolve = system_resolve,
        proxies: ProxyRules = http_proxy.NO_PROXIES,
    ) -> None:
        """`directory` is the one for temporary files; the socket is below it."""
        self._directory = os.path.realpath(directory)
        self._start = start
        self._dialer = Dialer(resolve, proxies)
        self._waiting: dict[str, HostAccess] = {}
        self._path: str | None = None
        self._free = asyncio.Semaphore(limits.PROXY_ALL_CONNECTIONS_MAX)

    def admit(self, access: HostAccess) -> str:
        """A word for the launcher of one command, which gives it these hosts. Raises OSError."""
        if self._path is None:
            self._path = self._open()
        token = secrets.token_hex(16)
        self._waiting[token] = access
        while len(self._waiting) > _WAITING_MAX:
            del self._waiting[next(iter(self._waiting))]
        return f"{token}:{self._path}"

    def _open(self) -> str:
        folder = private_directory.shared_root(self._directory)
        if not private_directory.make(folder):
            raise PermissionError(1, "it is not a directory of this user alone", folder)
        _remove_old(folder)
        path = os.path.join(folder, f"{_PREFIX}{secrets.token_hex(8)}")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(listener, path)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        self._start(self._serve_launchers(listener, path))
        return path

    async def _serve_launchers(self, listener: socket.socket, path: str) -> None:
        try:
            while True:
                connection = await _accept(listener)
                self._start(self._serve_launcher(connection))
        finally:
            self._path = None
            listener.close()
            with suppress(OSError):
                os.unlink(path)

    async def _serve_launcher(self, connection: socket.socket) -> None:
        with connection:
            connection.setblocking(False)
            with suppress(OSError):
                async with asyncio.timeout(_OFFER_SECONDS):
                    offered = await _receive(connection)
                if offered is None:
                    return
                with offered.listener as listener:
                    access = self._waiting.pop(offered.token, None)
                    if access is not None and _is_listener(listener):
                        await self._serve_command(listener, connection, access)

    async def _serve_command(
        self, listener: socket.socket, connection: socket.socket, access: HostAccess
    ) -> None:
        """Serve the connections of a command until its launcher's connection ends."""
        listener.setblocking(False)
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._serve_connections(listener, access))
            while await asyncio.get_running_loop().sock_recv(connection, 1):
                # A launcher sends nothing more.
                pass
            work.cancel()

    async def _serve_connections(self, listener: socket.socket, access: HostAccess) -> None:
        own = asyncio.Semaphore(limits.PROXY_CONNECTIONS_MAX)
        async with asyncio.TaskGroup() as group:
            while True:
                connection = await _accept(listener)
                try:
                    await own.acquire()
                    await self._free.acquire()
                except BaseException:
                    connection.close()
                    raise
                task = group.create_task(self._serve_connection(connection, access))
                task.add_done_callback(lambda _: (own.release(), self._free.release()))

    async def _serve_connection(self, connection: socket.socket, access: HostAccess) -> None:
        try:
            client = await asyncio.open_connection(
                sock=connection, limit=limits.PROXY_BUFFER_BYTES_MAX
            )
        except OSError:
            connection.close()
            return
        await ProxiedConnection(client, access, self._dialer).serve()


class _Offered(Value):
    token: str
    listener: socket.socket


async def _receive(connection: socket.socket) -> _Offered | None:
    """The token and the listener that a launcher sends; None if it does not."""
    await _wait_readable(connection)
    data, files, _, _ = socket.recv_fds(connection, _TOKEN_BYTES_MAX, 1)
    if not files:
        return None
    return _Offered(data.decode("ascii", errors="replace"), socket.socket(fileno=files[0]))


async def _wait_readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(connection, lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(connection)


async def _accept(listener: socket.socket) -> socket.socket:
    """The next connection. Waits while this process can open no more files."""
    while True:
        try:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        except OSError as error:
            if not descriptors.are_exhausted(error) and error.errno != errno.ECONNABORTED:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return connection


def _is_listener(found: socket.socket) -> bool:
    internet = (found.family, found.type) == (socket.AF_INET, socket.SOCK_STREAM)
    return internet and bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _bind(listener: socket.socket, path: str) -> None:
    """Bind a local socket to a path that may be longer than such a path can be."""
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)


def _remove_old(folder: str) -> None:
    """Remove the sockets of processes that are gone."""
    for name in os.listdir(folder):
        if not name.startswith(_PREFIX):
            continue
        path = os.path.join(folder, name)
        try:
            proxy_listener.connect(path).close()
        except ConnectionRefusedError:
            with suppress(OSError):
                os.unlink(path)
        except OSError:
            continue
