"""What a checker is: a promise, and how to see that it is broken."""

from collections.abc import Iterator
from typing import Protocol

from perdure.schema.value import Value
from perdure.testing.ledger import LoggedEvent
from perdure.testing.simulated_clients import Clients


class Seen(Value):
    """What a checker looks at."""

    clients: Clients
    fresh: list[LoggedEvent]
    """Committed since the last look."""
    at_rest: bool
    """Nothing runs and nothing is about to."""


class Checker(Protocol):
    promise: str

    def check(self, seen: Seen) -> Iterator[str]:
        """What is wrong, in words; nothing when all is well."""
        ...
