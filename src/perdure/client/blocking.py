"""Runs coroutines for a caller that has no event loop: one loop, driven by the caller's thread.

Nothing runs between two calls. Not for use inside a running loop, and not by two threads at once.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import TypeVar

from perdure.schema.codec import JsonValue

T = TypeVar("T")


class Blocking:
    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.closed = False

    def run(self, call: Coroutine[JsonValue, JsonValue, T]) -> T:
        """What `call` returns, waited for."""
        try:
            return self._runner.run(call)
        finally:
            # A call that was never started, because a loop runs here already, says so once.
            call.close()

    def iterate(self, stream: AsyncGenerator[T]) -> Generator[T]:
        """The items of `stream`. Leaving the generator closes the request."""
        try:
            while True:
                try:
                    item = self.run(_step(stream))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            # Closing the loop has closed every stream.
            if not self.closed:
                self.run(stream.aclose())

    def close(self) -> None:
        self.closed = True
        self._runner.close()


async def _step(stream: AsyncGenerator[T]) -> T:
    return await anext(stream)
