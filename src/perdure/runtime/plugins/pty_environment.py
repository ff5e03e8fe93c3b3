"""The PTY Environment that plugins contribute to: variables laid over those of a new terminal.

Every contribution is asked with the Location and the directory of the terminal. They are laid over
each other in the order of their keys, so that it does not matter who registered first. What the
caller gave lies below them and what every terminal has above; see location.workspace.terminals.

Invariant: a contribution that raises, hangs or gives something else is reported and left out, and
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
"""What to lay over the variables of a new terminal of that Location in that directory."""


class PtyEnvironment:
    def __init__(self) -> None:
        self._contributions: dict[str, PtyVariables] = {}

    @contextmanager
    def register(self, key: str, provide: PtyVariables) -> Generator[None]:
        """Contribute while the scope is open. A key that is taken is refused."""
        if key in self._contributions:
            raise ValueError(f"PTY Environment {key!r} is there already")
        self._contributions[key] = provide
        try:
            yield
        finally:
            del self._contributions[key]

    async def overlay(self, ref: LocationRef, directory: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for key, provide in sorted(self._contributions.items()):
            found |= await _contained(key, provide, ref, directory)
        return found


async def _contained(
    key: str, provide: PtyVariables, ref: LocationRef, directory: str
) -> Mapping[str, str]:
    """What one contributes. Boundary: whatever it raises ends here."""
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
