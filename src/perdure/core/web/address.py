"""Web addresses: parsing URLs, and whether a host is on the public internet.

A host can be spelled in many ways that mean this machine: shortened, octal, hexadecimal or
full-width numbers, IPv6 forms that contain an IPv4 address. Each is read as a browser reads it
before it is judged. No names are resolved here; resolved addresses are judged by `is_global` too.

Invariant: an address is global only if no registry lists it as anything else; a host that cannot
be parsed with certainty is refused.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

from perdure.core import limits
from perdure.lazy_pattern import lazy_pattern
from perdure.net import host_name
from perdure.schema.value import Value

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS: Final = {"http": 80, "https": 443}
_UNSAFE: Final = lazy_pattern(r"[\x00-\x20\x7f\\]")
_LABEL: Final = lazy_pattern(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = lazy_pattern(r"[0-9]+|0x[0-9a-f]*")
_NAME_CHARS_MAX: Final = 253
_NUMBER_CHARS_MAX: Final = 40

_NOT_GLOBAL_V4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network; the first address reaches this machine
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # an Azure host service, visible only from its virtual machines
        "169.254.0.0/16",  # link-local, with cloud metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# Everything outside is not global: unspecified, loopback, IPv4 in IPv6 (mapped, compatible,
# translated), NAT64 of both prefixes, discard, unique local, link-local, site-local, multicast.
_UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_GLOBAL_V6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: contains an IPv4 address
        "3fff::/20",  # documentation
    )
)

_WITHOUT_OWNER: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
        "198.18.0.0/15",
    )
)
"""For documentation and benchmarks. Programs that redirect traffic answer names with these."""


class WebAddressError(ValueError):
    """The URL cannot be fetched. The message says why."""


class WebAddress(Value, kw_only=True):
    """An http or https URL with a normalised host."""

    scheme: str
    host: str
    """A lower-case name without a final dot, or an IP address in canonical form."""
    port: int
    rest: str
    """Path and query as written, without the fragment."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.rest}"

    @property
    def number(self) -> Address | None:
        """The IP address of the host; None if it is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def names_this_machine(self) -> bool:
        return self.host == "localhost" or self.host.endswith(".localhost")


def parse(url: str) -> WebAddress:
    """Parse `url`. Raises WebAddressError."""
    if len(url) > limits.WEB_URL_CHARS_MAX:
        raise WebAddressError(f"The URL is longer than {limits.WEB_URL_CHARS_MAX} characters")
    _check_characters(url)
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as error:
        raise WebAddressError(f"Not a URL: {error}") from error
    if split.scheme not in _PORTS:
        raise WebAddressError("The URL must begin with http:// or https://")
    if "@" in split.netloc:
        raise WebAddressError("The URL must not hold a user name or password")
    if port == 0:
        raise WebAddressError("Not a URL: port 0 cannot be reached")
    return WebAddress(
        scheme=split.scheme,
        host=_host(split.netloc),
        port=port or _PORTS[split.scheme],
        rest=split.path + (f"?{split.query}" if split.query else ""),
    )


def follow(address: WebAddress, location: str) -> WebAddress:
    """The target of a redirect from `address`. Raises WebAddressError."""
    # Some servers do not encode spaces; browsers encode them.
    target = location.strip(" ").replace(" ", "%20")
    try:
        _check_characters(target)
        return parse(urljoin(address.url, target))
    except ValueError as error:
        raise WebAddressError(f"The page redirects to where we cannot follow. {error}") from error


def is_global(address: str) -> bool:
    """Whether the IP address is on the public internet."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(number, ipaddress.IPv4Address):
        return not any(number in network for network in _NOT_GLOBAL_V4)
    if number.scope_id is not None or number not in _UNICAST_V6:
        return False
    return not any(number in network for network in _NOT_GLOBAL_V6)


def is_internal(address: str) -> bool:
    """Whether the IP address is of this machine or a network behind it, or metadata of a cloud.

    So is one that contains another address. Unlike `is_global`, for a host that the user named.
    """
    if is_global(address):
        return False
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return True
    return not any(number in network for network in _WITHOUT_OWNER)


def is_allowed(address: WebAddress, hosts: Sequence[str]) -> bool:
    """Whether `hosts` contains it: as `host` for every port, `host:port`, or `*.domain`."""
    bracketed = f"[{address.host}]" if ":" in address.host else address.host
    spellings = {address.host, bracketed, f"{bracketed}:{address.port}"}
    return any(
        host in spellings or (host.startswith("*.") and address.host.endswith(host[1:]))
        for host in map(str.lower, hosts)
    )


def _check_characters(url: str) -> None:
    # The standard library silently removes some of these and then parses another URL.
    if _UNSAFE.search(url):
        raise WebAddressError("The URL holds a space, a backslash or a control character")


def _host(netloc: str) -> str:
    if netloc.startswith("["):
        return _bracketed(netloc)
    name = _ascii(netloc.rpartition(":")[0] if ":" in netloc else netloc).removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return str(_ipv4(labels))
    if len(name) > _NAME_CHARS_MAX or not all(map(_LABEL.fullmatch, labels)):
        raise WebAddressError("The URL does not name a host")
    return name


def _bracketed(netloc: str) -> str:
    inside, _, after = netloc[1:].partition("]")
    if after and not after.startswith(":"):
        raise WebAddressError("The URL does not name a host")
    if "%" in inside:
        raise WebAddressError("An address of one network interface cannot be fetched")
    try:
        return str(ipaddress.IPv6Address(inside))
    except ValueError as error:
        raise WebAddressError("The URL does not name a host") from error


def _ascii(host: str) -> str:
    """Normalise compatibility characters such as full-width digits, and encode the rest."""
    try:
        return host_name.to_ascii(host)
    except UnicodeError as error:
        raise WebAddressError("The URL does not name a host") from error


def _ipv4(labels: list[str]) -> ipaddress.IPv4Address:
    """Parse one to four numbers, decimal, octal or hexadecimal; the last fills the rest."""
    try:
        *leading, last = [_number(label) for label in labels]
    except ValueError as error:
        raise WebAddressError("The URL does not name a host") from error
    fits = len(leading) <= 3 and last < 256 ** (4 - len(leading))
    if not fits or any(number > 255 for number in leading):
        raise WebAddressError("The URL does not name a host")
    shifted = (number << 8 * (3 - index) for index, number in enumerate(leading))
    return ipaddress.IPv4Address(last + sum(shifted))


def _number(label: str) -> int:
    # int() also accepts signs and underscores.
    if len(label) > _NUMBER_CHARS_MAX or not _NUMBER.fullmatch(label):
        raise ValueError(label)
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if label.startswith("0") and label != "0" else int(label)
