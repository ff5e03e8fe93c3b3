"""Whether a request to a model is paid for, as far as we know.

One that is answered in this program or on this machine costs nothing, and neither does one whose
stated price is zero. A price that nobody stated is not zero.
"""

import ipaddress
from urllib.parse import urlsplit

from perdure.core.catalog import CatalogModel
from perdure.core.reach import BuiltIn, Supplied


def is_free(model: CatalogModel) -> bool:
    if isinstance(model.reach, BuiltIn | Supplied) or is_loopback(model.api.url or ""):
        return True
    return bool(model.cost) and all(tier.input == tier.output == 0 for tier in model.cost)


def is_loopback(url: str) -> bool:
    """Whether this address is this machine. A name that has to be looked up may be anywhere."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
