"""The PTY Environment: variables that plugins set for a new terminal.

Every contribution is called with the Location and the directory of the terminal. Later keys
override earlier ones, in the order of the keys, so the order of registration does not matter.
Contributions override the caller's variables, and location.workspace.terminals overrides both.

Invariant: a contribution that raises, hangs or returns something else is logged and left out, and
the terminal is started.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager

from perdure.core import limits
from perdure.schema.location import LocationRef

logger = logging.getLogger(__name__)

PtyVariables = Callable[[LocationRef, str], Awaitable[Mapping[str, str]]]
"""Returns the variables for a new terminal of that Location in that directory."""


class PtyEnvironment:
    def __init__(self) -> None:
        self._contributions: dict[str, PtyVariables] = {}

    @contextmanager
    def register(self, key: str, provide: PtyVariables) -> Generator[None]:
        """Contribute while the scope is open. Raises ValueError for a key that is taken."""
        if key in self._contributions:
            raise ValueError(f"PTY Environment {key!r} is there already")
        self._contributions[key] = provide
        try:
            yield
        finally:
            del self._contributions[key]

    async def overlay(self, ref: LocationRef, directory: str) -> Mapping[str, str]:
        """Return the variables of all contributions."""
        found: dict[str, str] = {}
        for key, provide in sorted(self._contributions.items()):
            found |= await _call(key, provide, ref, directory)
        return found


async def _call(
    key: str, provide: PtyVariables, ref: LocationRef, directory: str
) -> Mapping[str, str]:
    """Return the variables of one contribution. Boundary: its exceptions are logged here."""
    try:
        async with asyncio.timeout(limits.PTY_GUEST_SECONDS_MAX):
            given = dict(await provide(ref, directory))
        for name, value in given.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"{name!r} cannot be a variable")
    except Exception as error:
        reason = str(error) or repr(error)
        logger.warning("PTY Environment of %s failed: %s", key, reason, exc_info=True)
        return {}
    return given
