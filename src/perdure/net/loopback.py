"""Which host names mean this machine. No names are resolved.

Servers and their clients use the few names to which servers of this machine bind; code that calls
other hosts uses `is_loopback`.

Invariant: the only name that means this machine is `localhost`. Others may resolve to anything.
"""

import ipaddress
from typing import Final

_LOCALHOST: Final = "localhost"

NAMES: Final = frozenset({_LOCALHOST, "127.0.0.1", "::1"})
"""Names to which a server of this machine binds."""

AUTHORITIES: Final = frozenset(f"[{name}]" if ":" in name else name for name in NAMES)
"""The same names as written in a URL or a Host header."""


def is_loopback(host: str) -> bool:
    """Whether `host`, without brackets, is certainly this machine."""
    try:
        return host.lower() == _LOCALHOST or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
