"""An object that is made when it is first used.

Half of this program is needed only once a Session runs. Loading it at start would double the time
until the first request is answered, so the composition root hands out stand-ins for that half.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


def late(make: Callable[[], T]) -> T:
    """What `make` will return, before it has been called. `make` must return the same each time."""
    return cast("T", _Late(make))


class _Late(Generic[T]):
    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)
