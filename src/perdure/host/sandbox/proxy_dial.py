"""Connects to the host that a command asked for, if it may reach it.

Names are resolved here, and the connection goes to an address that was checked: a name cannot lead
to another address at the next question (DNS rebinding). If the user has a proxy, names are resolved
by that.

Invariant: an internal address is reached only if it is allowed itself.
"""

import asyncio
from collections.abc import Sequence

from perdure.core import limits
from perdure.core.sandbox.host_list import Target
from perdure.core.web import address as web_address
from perdure.host.http import proxy as http_proxy
from perdure.host.http.proxy import Proxy, ProxyRules
from perdure.host.http.tls import system_tls
from perdure.host.http.web_pages import Resolve
from perdure.net.transport import TransportError
from perdure.ports.sandbox import HostAccess
from perdure.schema.value import Value

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class RefusedError(Exception):
    """The command may not reach the host. The message is for the model."""


class UnreachableError(Exception):
    """The host cannot be reached. The message says why."""


class Dialer(Value):
    resolve: Resolve
    proxies: ProxyRules

    async def connect(self, target: Target, access: HostAccess, *, scheme: str) -> Streams:
        """Connect to a host. Raises RefusedError or UnreachableError."""
        if not await access.allows(target):
            raise RefusedError(f"network: host {target} is not in the allowed list")
        try:
            async with asyncio.timeout(limits.PROXY_CONNECT_SECONDS_MAX):
                proxy = self.proxies.proxy_for(scheme, target.host, target.port)
                if proxy is not None:
                    return await _connect_through(proxy, target)
                return await _connect_first(await self._addresses(target, access), target.port)
        except (OSError, TransportError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            raise UnreachableError(f"network: {target} cannot be reached: {reason}") from error

    async def _addresses(self, target: Target, access: HostAccess) -> Sequence[str]:
        if target.is_number:
            return (target.host,)
        try:
            found = await self.resolve(target.host, target.port)
        except UnicodeError as error:
            raise UnreachableError(f"network: {target.host} is not a name") from error
        for address in found:
            if web_address.is_internal(address) and not target.is_this_machine:
                await _require_named(target, address, access)
        return found[: limits.WEB_ADDRESSES_TRIED_MAX]


async def _require_named(target: Target, address: str, access: HostAccess) -> None:
    plain = address.partition("%")[0]
    if not await access.allows(Target(plain, target.port)):
        raise RefusedError(
            f"network: host {target} leads to {address}, which is an internal address"
            " and not in the allowed list"
        )


async def _connect_first(addresses: Sequence[str], port: int) -> Streams:
    problem = OSError("it has no address")
    for address in addresses:
        try:
            share = limits.PROXY_CONNECT_SECONDS_MAX / len(addresses)
            async with asyncio.timeout(share):
                return await asyncio.open_connection(
                    address, port, limit=limits.PROXY_BUFFER_BYTES_MAX
                )
        except OSError as error:
            problem = error
    raise problem


async def _connect_through(proxy: Proxy, target: Target) -> Streams:
    if not proxy.speaks_http:
        from perdure.host.http import socks

        made = await socks.connect(proxy, target.host, target.port)
        return await asyncio.open_connection(sock=made, limit=limits.PROXY_BUFFER_BYTES_MAX)
    reader, writer = await asyncio.open_connection(
        proxy.host,
        proxy.port,
        limit=limits.PROXY_BUFFER_BYTES_MAX,
        ssl=system_tls() if proxy.is_secure else None,
        server_hostname=proxy.host if proxy.is_secure else None,
    )
    try:
        writer.write(http_proxy.connect_request(proxy, str(target)))
        refusal = http_proxy.find_refusal(await reader.readuntil(b"\r\n\r\n"))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        refusal = "the proxy's answer is not HTTP"
    except BaseException:
        writer.transport.abort()
        raise
    if refusal is not None:
        writer.transport.abort()
        raise TransportError(refusal)
    return reader, writer
