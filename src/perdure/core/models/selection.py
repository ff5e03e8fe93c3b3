"""Chooses a model if none is configured.

`newest` is for conversations: a model that answers in text and can use tools, if there is one.
`small` is for titles and the like: cheap, recent and fast. location.models.catalog decides which
models can be used at all.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from perdure.core.models.catalog import CatalogModel
from perdure.core.models.transport import BuiltIn, HostProvided, Unreachable
from perdure.lazy_pattern import lazy_pattern
from perdure.net import loopback

_SMALL_NAME: Final = lazy_pattern(r"nano|flash|lite|mini|haiku|small|fast")
_MONTH_MILLIS: Final = 30 * 24 * 60 * 60 * 1000
_SMALL_MONTHS_MAX: Final = 18
_COST_WEIGHT: Final = 0.8
_AGE_WEIGHT: Final = 0.2
_NO_SMALL: Final = frozenset({"azure", "azure-cognitive-services"})
"""Providers whose models must be deployed first."""
_PREFERRED: Final = {"opencode": "gpt-5-nano"}


def newest(models: Sequence[CatalogModel]) -> CatalogModel | None:
    """The newest model that can be called; built-in ones come last."""
    working = [model for model in models if not isinstance(model.transport, Unreachable)]
    return min(working, key=_rank, default=None)


def small(models: Sequence[CatalogModel], *, now_millis: int) -> CatalogModel | None:
    """A small model among those of one provider; None if none is known to be small."""
    eligible = [model for model in models if _may_be_small(model, now_millis)]
    for model in eligible:
        if _PREFERRED.get(model.provider_id) == model.id:
            return model
    named = [model for model in eligible if _SMALL_NAME.search(model.id.lower())]
    candidates = named or eligible
    if not candidates:
        return None
    dearest = max(_price(model) for model in candidates)
    oldest = max(now_millis - model.released for model in candidates) or 1
    return min(
        candidates,
        key=lambda model: (
            _COST_WEIGHT * _price(model) / dearest
            + _AGE_WEIGHT * (now_millis - model.released) / oldest
        ),
    )


def _rank(model: CatalogModel) -> tuple[bool, bool, bool, int]:
    able = model.capabilities.tools and "text" in model.capabilities.output
    return (
        isinstance(model.transport, BuiltIn),
        not able,
        model.status == "deprecated",
        -model.released,
    )


def _may_be_small(model: CatalogModel, now_millis: int) -> bool:
    recent = 0 <= now_millis - model.released <= _SMALL_MONTHS_MAX * _MONTH_MILLIS
    speaks = "text" in model.capabilities.input and "text" in model.capabilities.output
    called = not isinstance(model.transport, Unreachable) and model.provider_id not in _NO_SMALL
    return recent and speaks and called and model.status == "active" and _price(model) > 0


def _price(model: CatalogModel) -> float:
    base = next((cost for cost in model.cost if not cost.tier), None)
    return 0 if base is None else base.input + base.output


def is_free(model: CatalogModel) -> bool:
    if isinstance(model.transport, BuiltIn | HostProvided) or _is_local(model.api.url or ""):
        return True
    return bool(model.cost) and all(tier.input == tier.output == 0 for tier in model.cost)


def _is_local(url: str) -> bool:
    try:
        return loopback.is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
