"""A server that stands for a whole module of tests, in a thread with an event loop of its own.

For tests that only speak to it over its port and leave it as it was: each boots nothing, and none
depends on the order. Whoever needs the runtime itself, or the provider's script, takes an Instance.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.instance import running
from tests.support.project import Place, make_place
from tests.support.scripted_provider import scripted_provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    api: Api
    place: Place


@contextmanager
def standing(
    root: Path,
    prepare: Callable[[Api], Awaitable[None]] | None = None,
    *,
    password: str | None = None,
) -> Generator[Standing]:
    """A server on a place below `root`, once `prepare` has put something into it."""
    ready: Future[tuple[Standing, Callable[[], object]]] = Future()

    async def live() -> None:
        async with scripted_provider() as provider:
            place = make_place(root, provider)
            async with running(place, password=password) as instance:
                if prepare is not None:
                    await prepare(instance.api)
                loop = asyncio.get_running_loop()
                stop = partial(loop.call_soon_threadsafe, instance.stop.set)
                ready.set_result((Standing(api=instance.api, place=place), stop))
                await instance.stop.wait()

    with ThreadPoolExecutor(1) as thread:
        life = thread.submit(lambda: asyncio.run(live()))
        life.add_done_callback(lambda _: ready.cancel())
        try:
            server, stop = ready.result(PATIENCE_SECONDS)
        except CancelledError:
            life.result()
            raise
        try:
            yield server
        finally:
            stop()
            life.result(PATIENCE_SECONDS)
