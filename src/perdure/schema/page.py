"""A Page: a bounded, ordered result, with opaque links to the previous and next page."""

from typing import Generic, TypeVar

from perdure.schema.value import Value

T = TypeVar("T")


class Page(Value, Generic[T], kw_only=True):
    """`previous` and `next` are set exactly if there is such a page."""

    items: tuple[T, ...]
    previous: str | None = None
    next: str | None = None
