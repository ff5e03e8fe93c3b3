"""The System Context Registry of a Location: who contributes to what the model is told.

Contributions are scoped and have stable keys; leaving a scope removes what it contributed at the
next boundary. All are observed together and combined in key order, so the rendered text does not
depend on who registered first. Composing and comparing is core.system_context.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from perdure.core import system_context
from perdure.core.system_context import ContextError, Observation

Producer = Callable[[], Awaitable[Observation]]
"""One look at the sources of a contribution, made anew at each boundary."""


class ContextRegistry:
    def __init__(self) -> None:
        self._producers: dict[str, Producer] = {}

    def contribute(self, key: str, producer: Producer) -> None:
        """Contribute as long as the Location is open. A key that is taken is refused."""
        if system_context.KEY.fullmatch(key) is None:
            raise ContextError(f"context contribution {key!r} is not namespace/name")
        if key in self._producers:
            raise ContextError(f"context contribution {key!r} is there already")
        self._producers[key] = producer

    @contextmanager
    def register(self, key: str, producer: Producer) -> Generator[None]:
        """Contribute while the scope is open."""
        self.contribute(key, producer)
        try:
            yield
        finally:
            del self._producers[key]

    async def observe(self) -> Observation:
        """Everything that is contributed now, in key order."""
        producers = [producer for _, producer in sorted(self._producers.items())]
        async with asyncio.TaskGroup() as group:
            looks = [group.create_task(_look(producer)) for producer in producers]
        return system_context.combine(*(look.result() for look in looks))


async def _look(producer: Producer) -> Observation:
    return await producer()
