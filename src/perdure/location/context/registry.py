"""The System Context Registry of a Location: registers Context Sources and observes them.

Contributions are scoped and have stable keys; ending a scope removes its contribution at the next
boundary. All are observed together and combined in key order, so the rendered text does not depend
on the order of registration. core.context.system_context combines and compares them.

A guest contributes plain texts, under its own key or below it. When it raises, hangs or returns
something else, that is logged and its sources are unavailable; what the model was told stays.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.context.system_context import ContextError, ContextSource, Observation, Observed
from perdure.schema.approval.permission import SessionRules
from perdure.schema.ids import SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import Value

logger = logging.getLogger(__name__)


class Subject(Value, kw_only=True):
    """The Session, agent and model that a source may depend on. Sampled once for a turn."""

    session_id: SessionID
    agent: AgentInfo | None = None
    model: ModelRef | None = None
    discovered: tuple[str, ...] = ()
    """Instruction files found next to files that the Session has read."""
    admitted: frozenset[str] = frozenset()
    """The keys of the sources that the Session has been told."""
    above: tuple[str, ...] = ()
    """The agents of the Sessions above this one."""
    rules: SessionRules = ()
    """The permission rules of the Session."""


Producer = Callable[[Subject], Awaitable[Observation]]
"""Observes the sources of a contribution; called at each boundary."""


class ContextText(Value, kw_only=True):
    """A guest's source, told again when its `text` changes."""

    key: str
    text: str
    changed: str | None = None
    """The text of a change; None uses `text`."""
    removed: str | None = None
    """The text of a removal. None: a removal starts a new epoch."""


GuestProducer = Callable[[Subject], Awaitable[Sequence[ContextText]]]


class ContextRegistry:
    """The contributions of a Location; `application` holds those of all Locations."""

    def __init__(self, *, application: "ContextRegistry | None" = None) -> None:
        self._application = application
        self._producers: dict[str, Producer] = {}
        self._immediate: set[str] = set()

    def contribute(self, key: str, producer: Producer, *, immediate: bool = False) -> None:
        """Contribute while the Location is open. Raises ContextError for a key in use.

        An `immediate` producer hardly ever waits, and gets no task of its own.
        """
        if system_context.KEY.fullmatch(key) is None:
            raise ContextError(f"context contribution {key!r} is not namespace/name")
        if key in self._producers:
            raise ContextError(f"context contribution {key!r} exists already")
        self._producers[key] = producer
        if immediate:
            self._immediate.add(key)

    @contextmanager
    def register(self, key: str, producer: Producer) -> Generator[None]:
        """Contribute while the scope is open."""
        self.contribute(key, producer)
        try:
            yield
        finally:
            del self._producers[key]

    def register_guest(self, key: str, producer: GuestProducer) -> AbstractContextManager[None]:
        """Contribute a guest's texts while the scope is open. Its failures are contained."""
        for other in self._producers:
            if _is_below(key, other) or _is_below(other, key):
                raise ContextError(f"context contribution {key!r} clashes with {other!r}")
        return self.register(key, partial(_observe_guest, key, producer))

    async def observe(self, subject: Subject) -> Observation:
        """Observe all contributions, in key order."""
        producers = self.contributions()
        waiting = [key for key in producers if key not in self._immediate]
        observed = await _observe_together(producers, waiting, subject) if waiting else {}
        for key in self._immediate:
            observed[key] = await producers[key](subject)
        return system_context.combine(*(observed[key] for key in sorted(producers)))

    def contributions(self) -> dict[str, Producer]:
        """Producers by key: the application's and this Location's."""
        shared = {} if self._application is None else self._application.contributions()
        return shared | self._producers


async def _observe_together(
    producers: dict[str, Producer], keys: Sequence[str], subject: Subject
) -> dict[str, Observation]:
    async with asyncio.TaskGroup() as group:
        tasks = {key: group.create_task(_observe(producers[key], subject)) for key in keys}
    return {key: task.result() for key, task in tasks.items()}


async def _observe(producer: Producer, subject: Subject) -> Observation:
    return await producer(subject)


async def _observe_guest(key: str, producer: GuestProducer, subject: Subject) -> Observation:
    """Observe a guest. Boundary: whatever it raises is logged here."""
    try:
        async with asyncio.timeout(limits.CONTEXT_GUEST_SECONDS_MAX):
            texts = await producer(subject)
        return system_context.combine(tuple(_observed(key, text) for text in texts))
    except Exception as error:
        reason = str(error) or repr(error)
        logger.warning("context contribution %s failed: %s", key, reason, exc_info=True)
        known = (other for other in subject.admitted if other == key or _is_below(other, key))
        return tuple(map(system_context.unavailable, sorted(known)))


def _observed(key: str, contribution: ContextText) -> Observed:
    if contribution.key != key and not _is_below(contribution.key, key):
        raise ContextError(f"source {contribution.key!r} does not belong to {key!r}")
    texts = (
        contribution.text,
        contribution.changed or contribution.text,
        contribution.removed or contribution.text,
    )
    for text in texts:
        if not text.strip():
            raise ContextError(f"source {contribution.key!r} has no text")
        if len(text.encode()) > limits.CONTEXT_GUEST_BYTES_MAX:
            raise ContextError(
                f"source {contribution.key!r} is over {limits.CONTEXT_GUEST_BYTES_MAX}"
            )
    removed = contribution.removed
    source = ContextSource(
        key=contribution.key,
        type=str,
        baseline=lambda text: text,
        update=lambda previous, text: contribution.changed or text,
        removed=None if removed is None else lambda text: removed,
    )
    return system_context.make(source, contribution.text)


def _is_below(key: str, other: str) -> bool:
    return key.startswith(f"{other}/")
