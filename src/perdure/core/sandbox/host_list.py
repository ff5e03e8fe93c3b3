"""The hosts that commands in the sandbox may reach: `python.org`, `*.github.com:443`, `[::1]:80`.

An entry without a port means the usual ports of the web. A `*.` entry means the names below it and
not the name itself, and `*` every host. `:*` means every port.

Invariant: hosts are compared in one normal form (core.web.address), so that no spelling of an
address passes as a name. A wildcard never means an internal address.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final

from perdure.core.web import address as web_address
from perdure.core.web.address import WebAddressError
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

_HOST: Final = lazy_pattern(r"\[[0-9a-fA-F:.]+\]|[^\s/@?#:\[\]\\]+")
_AUTHORITY: Final = lazy_pattern(r"(\[[0-9a-fA-F:.]+\]|[^\s/@?#:\[\]\\]+)(?::([0-9]{1,5}))?")
_PORTS: Final = (80, 443)
_EVERY_PORT: Final = range(1, 65_536)
_CHARS_MAX: Final = 300


class Target(Value):
    """A host and a port that a command wants to reach."""

    host: str
    """A lower-case name without a final dot, or an IP address in canonical form."""
    port: int

    @property
    def is_number(self) -> bool:
        """Whether the host is an IP address."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def is_private(self) -> bool:
        """Whether the host is known to be this machine, or in a network behind it."""
        if self.is_number:
            return web_address.is_internal(self.host)
        return self.is_this_machine

    @property
    def is_this_machine(self) -> bool:
        """Whether the host is a name of this machine by convention."""
        return self.host == "localhost" or self.host.endswith(".localhost")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HostEntry(Value):
    host: str
    """In normal form; after `*.` the name that is above; `*` alone for every host."""
    ports: tuple[int, ...] | None
    """None for every port."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.ports == _PORTS:
            return host
        return f"{host}:*" if self.ports is None else f"{host}:{self.ports[0]}"

    def covers(self, target: Target) -> bool:
        if self.ports is not None and target.port not in self.ports:
            return False
        if self.host == target.host:
            return True
        if target.is_private:
            return False
        if self.host == "*":
            return True
        below = self.host.startswith("*.") and target.host.endswith(self.host[1:])
        return below and not target.is_number


class HostList(Value):
    entries: tuple[HostEntry, ...] = ()
    bound: "HostList | None" = None
    """Another list that must mean the host too."""

    def covers(self, target: Target) -> bool:
        if self.bound is not None and not self.bound.covers(target):
            return False
        return any(entry.covers(target) for entry in self.entries)

    def within(self, bound: "HostList") -> "HostList":
        """The hosts that both lists mean."""
        return HostList(self.entries, bound)

    @property
    def names_this_machine(self) -> bool:
        """Whether servers of this machine, outside the sandbox, are among the hosts."""
        return any(_is_loopback(entry.host) for entry in self.entries)


def parse_list(texts: Iterable[str]) -> HostList:
    """The hosts of these entries; one that cannot be read allows nothing."""
    entries: list[HostEntry] = []
    for text in texts:
        try:
            entries.append(_parse_entry(text))
        except ValueError:
            continue
    return HostList(tuple(entries))


def parse_target(authority: str, *, port: int | None = None) -> Target:
    """A host with its port, as in `CONNECT` or in a Host header. Raises ValueError.

    `port` is used where the text names none.
    """
    matched = _AUTHORITY.fullmatch(authority) if len(authority) <= _CHARS_MAX else None
    if matched is None:
        raise ValueError("it does not name a host")
    number = int(matched[2]) if matched[2] else port
    if number is None or number not in _EVERY_PORT:
        raise ValueError("it does not name a port")
    return Target(_normal_host(matched[1]), number)


def _parse_entry(text: str) -> HostEntry:
    host, ports = _split_ports(text.strip())
    if host == "*":
        return HostEntry(host, ports)
    if host.startswith("*."):
        return HostEntry(f"*.{_normal_host(host[2:])}", ports)
    return HostEntry(_normal_host(host), ports)


def _split_ports(text: str) -> tuple[str, tuple[int, ...] | None]:
    try:
        # An IPv6 address without brackets has no port.
        return f"[{ipaddress.IPv6Address(text)}]", _PORTS
    except ValueError:
        pass
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text, _PORTS
    if port == "*":
        return host, None
    if not port.isdecimal() or int(port) not in _EVERY_PORT:
        raise ValueError("it does not name a port")
    return host, (int(port),)


def _normal_host(host: str) -> str:
    if not _HOST.fullmatch(host):
        raise ValueError("it does not name a host")
    try:
        return web_address.parse(f"http://{host}/").host
    except WebAddressError as error:
        raise ValueError("it does not name a host") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
