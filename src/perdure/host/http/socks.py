"""Connections through a SOCKS proxy, if the optional package `python-socks` is installed.

Only this module uses the package.
"""

import importlib
import importlib.util
import socket
from typing import Final, Protocol, cast

from perdure.host.http.proxy import Proxy
from perdure.net.transport import TransportError

_TYPES: Final = {"socks4": "SOCKS4", "socks4a": "SOCKS4", "socks5": "SOCKS5", "socks5h": "SOCKS5"}
_RESOLVING: Final = frozenset({"socks4a", "socks5h"})
"""Schemes with which the proxy resolves the name; with the others this machine does."""


class _Dialer(Protocol):
    async def connect(self, dest_host: str, dest_port: int) -> socket.socket: ...


class _MakeDialer(Protocol):
    def __call__(
        self,
        proxy_type: object,
        *,
        host: str,
        port: int,
        username: str | None,
        password: str | None,
        rdns: bool,
    ) -> _Dialer: ...


class _Package(Protocol):
    ProxyType: type
    ProxyError: type[Exception]


async def connect(proxy: Proxy, host: str, port: int) -> socket.socket:
    """A socket that leads to `host` through the proxy. Raises TransportError or OSError."""
    if importlib.util.find_spec("python_socks") is None:
        raise TransportError(
            f"the proxy {proxy.scheme}://{proxy.host} needs the Python package `python-socks`:"
            " install `perdure[socks]`"
        )
    package = cast("_Package", importlib.import_module("python_socks"))
    make = cast("_MakeDialer", importlib.import_module("python_socks.async_.asyncio").Proxy)
    username, password = proxy.login or (None, None)
    dialer = make(
        getattr(package.ProxyType, _TYPES[proxy.scheme]),
        host=proxy.host,
        port=proxy.port,
        username=username,
        password=password,
        rdns=proxy.scheme in _RESOLVING,
    )
    try:
        return await dialer.connect(host, port)
    except package.ProxyError as error:
        raise TransportError(f"the proxy refused: {error}") from error
