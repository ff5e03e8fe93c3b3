"""Running a coroutine that never suspends, such as a job on SQLite, without a loop."""

from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


def never_waiting(work: Awaitable[T]) -> T:
    step = work.__await__()
    try:
        next(step)
    except StopIteration as done:
        return done.value
    raise AssertionError("this was said never to wait")
