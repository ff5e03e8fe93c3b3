"""Runs coroutines for a program without an event loop: one loop, driven by the caller's thread.

The loop stands still between two calls, and so does a host that was opened on it. Not for use
inside a running loop, nor by two threads at once.

Invariant: a scope is entered and left by the same task, as task groups and timeouts ask for.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from typing import Self, TypeVar

from perdure.schema.codec import JsonValue

T = TypeVar("T")


def is_loop_running() -> bool:
    """Whether an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Blocking:
    """`with` it, or call `close`."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._scopes: list[OpenScope] = []
        self.closed = False

    def run(self, call: Coroutine[JsonValue, JsonValue, T]) -> T:
        """The result of `call`, waited for. Raises RuntimeError inside a running loop."""
        try:
            if is_loop_running():
                raise RuntimeError(
                    "the blocking form cannot be used inside a running event loop, as in a"
                    " notebook; write `async with perdure.open(...) as host:` (or connect) and"
                    " `await` its calls"
                )
            return self._runner.run(call)
        finally:
            # Closes a call that was never started because a loop is running in this thread.
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

    def enter(self, scope: AbstractAsyncContextManager[T]) -> T:
        """Enter `scope`, and leave it when this is closed."""
        held = OpenScope()
        entered = self.run(held.open(scope))
        self._scopes.append(held)
        return entered

    def close(self) -> None:
        """Leave the scopes, the last one first, and close the loop. Closing twice is harmless."""
        if self.closed:
            return
        try:
            while self._scopes:
                self.run(self._scopes.pop().close())
        finally:
            self.closed = True
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class OpenScope:
    """A context manager that a task of its own holds open: each blocking call is another task."""

    def __init__(self) -> None:
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self, scope: AbstractAsyncContextManager[T]) -> T:
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[T] = loop.create_future()
        self._task = loop.create_task(self._hold(scope, entered), name="blocking scope")
        try:
            return await entered
        except BaseException:
            self._task.cancel()
            await asyncio.wait((self._task,))
            raise

    async def close(self) -> None:
        """Leave the scope; raises what leaving it raises."""
        self._leave.set()
        if self._task is not None:
            await self._task

    async def _hold(
        self, scope: AbstractAsyncContextManager[T], entered: "asyncio.Future[T]"
    ) -> None:
        try:
            async with scope as value:
                entered.set_result(value)
                await self._leave.wait()
        except BaseException as error:
            if entered.done():
                raise
            entered.set_exception(error)


async def _step(stream: AsyncGenerator[T]) -> T:
    return await anext(stream)
