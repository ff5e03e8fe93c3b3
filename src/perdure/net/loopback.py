"""Tells which hosts are this machine, by what they are called. No name is resolved.

There are three answers, because a mistake costs differently:
`is_loopback_name` and `is_loopback_url` know the few names under which servers of this machine are
bound and called; what is trusted goes by them. `is_loopback` knows every host that cannot be
another machine. `is_loopback_domain` knows the names below `localhost` too, which must not be sent
to a proxy.

Invariant: no name but `localhost` is trusted. Other names are resolved, and may be anywhere.
"""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

_LOCALHOST: Final = "localhost"

NAMES: Final = frozenset({_LOCALHOST, "127.0.0.1", "::1"})
"""Names under which a server of this machine is bound and called."""

AUTHORITIES: Final = frozenset(f"[{name}]" if ":" in name else name for name in NAMES)
"""The same names as they stand in a URL and in a Host header."""


def is_loopback_name(host: str) -> bool:
    """Whether `host`, with or without brackets, is a name of a server of this machine."""
    return host.lower() in NAMES or host.lower() in AUTHORITIES


def is_loopback_url(url: str) -> bool:
    """Whether `url` leads to a name of a server of this machine."""
    return (urlsplit(url).hostname or "") in NAMES


def is_loopback(host: str) -> bool:
    """Whether `host`, without brackets, is certainly this machine."""
    try:
        return host.lower() == _LOCALHOST or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_loopback_domain(host: str) -> bool:
    """Whether `host` is this machine or a name below `localhost`: a proxy would look on itself."""
    return is_loopback(host) or host.lower().endswith(f".{_LOCALHOST}")
