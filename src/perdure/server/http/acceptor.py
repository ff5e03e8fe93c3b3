"""Listens on TCP and accepts connections, a few in each turn of the event loop.

asyncio's own server tries again 512 times in one turn when the process has no descriptor left, and
writes a stack trace each time. Here one failure stops accepting for a moment: clients wait in the
system's queue, and the loop goes on with the connections that there are.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Final

from perdure.core import limits

logger = logging.getLogger(__name__)

_BACKLOG: Final = 512
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


async def listen(host: str, port: int) -> tuple[socket.socket, ...]:
    """Sockets on all addresses of `host`, with one port. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # Where the system chooses the port, all addresses get the first one's.
            one.bind((address[0], port or port_of(sockets[0]), *address[2:]))
            one.listen(_BACKLOG)
            one.setblocking(False)
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    return tuple(sockets)


def port_of(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


class Acceptor:
    def __init__(
        self,
        sockets: Sequence[socket.socket],
        *,
        accepted: Callable[[socket.socket], None],
        exhausted: Callable[[], None],
    ) -> None:
        """`exhausted` is called when the system has no descriptor or memory for a connection."""
        self._sockets = sockets
        self._accepted = accepted
        self._exhausted = exhausted
        self._loop = asyncio.get_running_loop()
        self._retries: set[asyncio.TimerHandle] = set()

    def start(self) -> None:
        for listening in self._sockets:
            self._watch(listening)

    def close(self) -> None:
        for retry in self._retries:
            retry.cancel()
        sockets, self._sockets = self._sockets, ()
        for listening in sockets:
            self._loop.remove_reader(listening)
            listening.close()

    def _watch(self, listening: socket.socket) -> None:
        self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(limits.ACCEPTS_PER_TURN_MAX):
            try:
                connected, _ = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(listening, error)
                    return
                # The client has gone (ECONNABORTED), or a packet filter refused it (EPERM).
                logger.debug("a connection was lost before it was accepted: %s", error)
                continue
            connected.setblocking(False)
            self._accepted(connected)

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        seconds = limits.ACCEPT_RETRY_SECONDS
        logger.warning(
            "no new connection for %g s: %s; raise `ulimit -n`, or close connections",
            seconds,
            error.strerror,
        )
        self._loop.remove_reader(listening)
        self._exhausted()

        def again() -> None:
            self._retries.discard(retry)
            self._watch(listening)

        retry = self._loop.call_later(seconds, again)
        self._retries.add(retry)
