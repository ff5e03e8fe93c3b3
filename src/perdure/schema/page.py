"""A Page: a bounded, ordered result, with opaque links to its neighbours of the same query."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """`previous` and `next` are there exactly when there is such a page."""

    items: tuple[T, ...]
    previous: str | None = None
    next: str | None = None
