"""One connection of a command to the filtering proxy, over HTTP or SOCKS 5.

The first byte tells the protocol. A tunnel must begin as what its host is for: TLS must name the
host of the tunnel, port 443 must be TLS, and plain HTTP is refused, because its requests are
forwarded one by one (core.sandbox.proxy_request).

Invariant: no byte of the command reaches a server before the host was allowed and the beginning of
the tunnel was checked. Each direction holds a bounded number of bytes.
"""

import asyncio
import ipaddress
from contextlib import suppress
from typing import Final

from perdure.core import limits
from perdure.core.sandbox import host_list, proxy_request, tls_name
from perdure.core.sandbox.host_list import Target
from perdure.core.sandbox.proxy_request import BadRequestError, PlainRequest, TunnelRequest
from perdure.core.sandbox.tls_name import ServerName
from perdure.host.sandbox.proxy_dial import Dialer, RefusedError, Streams, UnreachableError
from perdure.ports.sandbox import HostAccess
from perdure.schema.value import Value

_HEAD_END: Final = b"\r\n\r\n"
_TLS_PORT: Final = 443
_SOCKS_VERSION: Final = 5
_SOCKS_CONNECT: Final = 1
_SOCKS_DONE: Final = 0
_SOCKS_REFUSED: Final = 2
_SOCKS_UNREACHABLE: Final = 4
_SOCKS_UNKNOWN_COMMAND: Final = 7
_SOCKS_ADDRESS_BYTES: Final = {1: 4, 4: 16}
_SOCKS_NAME: Final = 3
_BEGINNING_READS_MAX: Final = 64
"""How many pieces the beginning of a tunnel may come in: each is looked at again."""


class ProxiedConnection(Value):
    client: Streams
    access: HostAccess
    dialer: Dialer

    async def serve(self) -> None:
        """Serve the connection to its end. Its network errors end it quietly."""
        reader, writer = self.client
        try:
            await self._serve(reader)
            async with asyncio.timeout(limits.PROXY_REQUEST_SECONDS_MAX):
                writer.close()
                await writer.wait_closed()
        except* (OSError, EOFError, asyncio.LimitOverrunError, BadRequestError):
            # Either side is gone, too slow, or does not speak the protocol.
            pass
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        async with asyncio.timeout(limits.PROXY_REQUEST_SECONDS_MAX):
            first = await reader.readexactly(1)
            request = (
                await self._read_socks() if first[0] == _SOCKS_VERSION else await self._read(first)
            )
        if request is None:
            return
        socks = first[0] == _SOCKS_VERSION
        scheme = "http" if isinstance(request, PlainRequest) else "https"
        try:
            server = await self.dialer.connect(request.target, self.access, scheme=scheme)
        except RefusedError as error:
            self.access.refuse(str(error))
            self._answer(403, str(error), socks=socks)
            return
        except UnreachableError as error:
            self._answer(502, str(error), socks=socks)
            return
        try:
            if isinstance(request, PlainRequest):
                await _forward(self.client, server, request)
            else:
                self._confirm(socks=socks)
                await self._tunnel(request.target, server)
        finally:
            server[1].transport.abort()

    async def _read(self, first: bytes) -> TunnelRequest | PlainRequest | None:
        try:
            head = first + await self.client[0].readuntil(_HEAD_END)
            return proxy_request.parse(head)
        except asyncio.LimitOverrunError:
            self._answer(431, "network: the headers are too long")
        except BadRequestError as error:
            message = f"network: the request is refused: {error}"
            self.access.refuse(message)
            self._answer(400, message)
        return None

    async def _read_socks(self) -> TunnelRequest | None:
        reader, writer = self.client
        await reader.readexactly((await reader.readexactly(1))[0])
        # No login: the listener belongs to this command alone.
        writer.write(bytes((_SOCKS_VERSION, 0)))
        _, command, _, kind = await reader.readexactly(4)
        if kind in _SOCKS_ADDRESS_BYTES:
            address = ipaddress.ip_address(await reader.readexactly(_SOCKS_ADDRESS_BYTES[kind]))
            host = f"[{address}]" if address.version == 6 else str(address)
        elif kind == _SOCKS_NAME:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("latin-1")
        else:
            host = ""
        port = int.from_bytes(await reader.readexactly(2), "big")
        try:
            if command == _SOCKS_CONNECT:
                return TunnelRequest(host_list.parse_target(f"{host}:{port}"))
            refused = _SOCKS_UNKNOWN_COMMAND
        except ValueError:
            refused = _SOCKS_REFUSED
        self.access.refuse("network: the SOCKS request is refused")
        writer.write(_socks_answer(refused))
        return None

    def _answer(self, status: int, message: str, *, socks: bool = False) -> None:
        if socks:
            code = _SOCKS_REFUSED if status == 403 else _SOCKS_UNREACHABLE
            self.client[1].write(_socks_answer(code))
            return
        # Many clients show the first line alone.
        text = message.encode("ascii", errors="replace")
        headers = b"Content-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        line = b"HTTP/1.1 %d %s\r\n" % (status, text)
        self.client[1].write(line + headers % (len(text) + 1) + text + b"\n")

    def _confirm(self, *, socks: bool) -> None:
        done = b"HTTP/1.1 200 Connection established\r\n\r\n"
        self.client[1].write(_socks_answer(_SOCKS_DONE) if socks else done)

    async def _tunnel(self, target: Target, server: Streams) -> None:
        async with (
            asyncio.timeout(limits.PROXY_IDLE_SECONDS_MAX) as idle,
            asyncio.TaskGroup() as directions,
        ):
            back = directions.create_task(_copy(server[0], self.client[1], idle))
            beginning = await self._read_beginning(target)
            if beginning is None:
                back.cancel()
                return
            server[1].write(beginning)
            await _copy(self.client[0], server[1], idle)

    async def _read_beginning(self, target: Target) -> bytes | None:
        """The first bytes of the command in a tunnel, checked; None if they are refused."""
        async with asyncio.timeout(limits.PROXY_IDLE_SECONDS_MAX) as limit:
            data = await self.client[0].read(limits.PROXY_BUFFER_BYTES_MAX)
            now = asyncio.get_running_loop().time()
            limit.reschedule(now + limits.PROXY_REQUEST_SECONDS_MAX)
            for _ in range(_BEGINNING_READS_MAX):
                problem = _judge_beginning(data, target)
                if problem == "":
                    return data
                if problem is not None:
                    self.access.refuse(f"network: {target}: {problem}")
                    return None
                more = await self.client[0].read(limits.PROXY_BUFFER_BYTES_MAX)
                if not more:
                    return None
                data += more
        return None


def _judge_beginning(data: bytes, target: Target) -> str | None:
    """Empty if a tunnel may begin so, None if more must be seen, else why it may not."""
    if not data:
        return ""
    if tls_name.is_tls(data):
        found = tls_name.read_server_name(data)
        if isinstance(found, ServerName):
            return _judge_name(found.name, target)
        return None if found == "incomplete" else "the first message is not one of TLS"
    if target.port == _TLS_PORT:
        return "a connection to port 443 must be TLS"
    match proxy_request.looks_like_http(data):
        case "incomplete":
            return None
        case True:
            return "plain HTTP is not sent through a tunnel; ask the proxy for http:// addresses"
        case False:
            return ""


def _judge_name(name: str | None, target: Target) -> str:
    if name is None:
        return "" if target.is_number else "TLS without a server name"
    with suppress(ValueError):
        if host_list.parse_target(name, port=target.port) == target:
            return ""
    return f"the server name {name[:100]!r} of TLS is not the host of the connection"


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: asyncio.Timeout
) -> None:
    """Copy bytes until the end, with backpressure."""
    while data := await reader.read(limits.PROXY_BUFFER_BYTES_MAX):
        _postpone(idle)
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _postpone(idle: asyncio.Timeout) -> None:
    """Begin the time without a byte anew."""
    if not idle.expired():
        now = asyncio.get_running_loop().time()
        idle.reschedule(now + limits.PROXY_IDLE_SECONDS_MAX)


async def _forward(client: Streams, server: Streams, request: PlainRequest) -> None:
    server[1].write(request.head)
    async with (
        asyncio.timeout(limits.PROXY_IDLE_SECONDS_MAX) as idle,
        asyncio.TaskGroup() as directions,
    ):
        body = directions.create_task(_copy_body(client[0], server[1], request.length, idle))
        await _copy(server[0], client[1], idle)
        # A server may answer before it has read all.
        body.cancel()


async def _copy_body(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    length: int | None,
    idle: asyncio.Timeout,
) -> None:
    """Copy exactly the body of a request. What follows it is not sent."""
    if length is not None:
        await _copy_bytes(reader, writer, length, idle)
        return
    while True:
        size = proxy_request.parse_chunk_size(await reader.readuntil(b"\n"))
        if not size:
            break
        writer.write(b"%x\r\n" % size)
        await _copy_bytes(reader, writer, size, idle)
        if await reader.readexactly(2) != b"\r\n":
            raise BadRequestError("a chunk is longer than it says")
        writer.write(b"\r\n")
    # Trailing headers are dropped.
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _copy_bytes(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    length: int,
    idle: asyncio.Timeout,
) -> None:
    while length:
        data = await reader.read(min(length, limits.PROXY_BUFFER_BYTES_MAX))
        if not data:
            raise asyncio.IncompleteReadError(b"", length)
        _postpone(idle)
        writer.write(data)
        length -= len(data)
        await writer.drain()


def _socks_answer(code: int) -> bytes:
    return bytes((_SOCKS_VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0))
