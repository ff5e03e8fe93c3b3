"""Which hosts are this machine, by what they are called. Nothing is looked up.

Two questions are asked about it. A server and its clients go by the few names under which servers
of this machine are bound and called; whoever calls others takes every host that cannot be another
machine. Who asks which, and what else they take for this machine, is theirs.

Invariant: no name but `localhost` is this machine. Others are looked up, and may be anywhere.
"""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

_LOCALHOST: Final = "localhost"

NAMES: Final = frozenset({_LOCALHOST, "127.0.0.1", "::1"})
"""Under which a server of this machine is bound and called."""

AUTHORITIES: Final = frozenset(f"[{name}]" if ":" in name else name for name in NAMES)
"""The same, as they stand in a URL and in a Host header."""


def is_loopback(host: str) -> bool:
    """Whether `host`, without brackets, can only be this machine."""
    try:
        return host.lower() == _LOCALHOST or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_loopback_url(url: str) -> bool:
    """Whether a URL names a server of this machine by one of `NAMES`."""
    return (urlsplit(url).hostname or "") in NAMES
