"""The interface of a checker: a promise, and how to see that it is broken.

A checker sees a machine from outside: its database, what the witness observed, what clients were
told. This is so for a simulated machine, and for what a killed process left.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.value import Value
from tests.harness.checkers.ledger import Ledger, LoggedEvent
from tests.harness.checkers.witness import CallKey, Effect, Request
from tests.harness.simulation.clients import Reader, SentPrompt
from tests.harness.simulation.machine import Process
from tests.harness.simulation.unasked import UnaskedPrompts


class SeenByWitness(Protocol):
    @property
    def effects(self) -> Mapping[CallKey, Effect]: ...
    @property
    def requests(self) -> Sequence[Request]: ...
    @property
    def excused(self) -> Mapping[SessionID, Seq]: ...


class SeenMachine(Protocol):
    @property
    def ledger(self) -> Ledger: ...
    @property
    def witness(self) -> SeenByWitness: ...
    @property
    def processes(self) -> Sequence[Process]:
        """Those that are alive."""
        ...


class SeenClients(Protocol):
    @property
    def machine(self) -> SeenMachine: ...
    @property
    def prompts(self) -> Mapping[MessageID, SentPrompt]: ...
    @property
    def readers(self) -> Sequence[Reader]: ...
    @property
    def unasked(self) -> UnaskedPrompts: ...


class Seen(Value):
    """What a checker looks at."""

    clients: SeenClients
    fresh: list[LoggedEvent]
    """Committed since the last look."""
    at_rest: bool
    """Nothing runs and nothing is about to."""


class Checker(Protocol):
    promise: str

    def check(self, seen: Seen) -> Iterator[str]:
        """What is wrong, in words; nothing when all is well."""
        ...
