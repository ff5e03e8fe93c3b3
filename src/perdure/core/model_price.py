"""Whether a request to a model is paid for, as far as we know.

One that is answered in this program or on this machine costs nothing, and neither does one whose
stated price is zero. A price that nobody stated is not zero.
"""

from urllib.parse import urlsplit

from perdure.core.catalog import CatalogModel
from perdure.core.reach import BuiltIn, Supplied
from perdure.schema import loopback


def is_free(model: CatalogModel) -> bool:
    if isinstance(model.reach, BuiltIn | Supplied) or _is_here(model.api.url or ""):
        return True
    return bool(model.cost) and all(tier.input == tier.output == 0 for tier in model.cost)


def _is_here(url: str) -> bool:
    try:
        return loopback.is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
