"""Ids that are the same in every run."""

from random import Random

from perdure.host.ids import ComposedIds
from perdure.ports import Clock
from perdure.schema import ids
from perdure.testing.manual_clock import ManualClock


class SeededIds(ComposedIds):
    """Implements ports.IdSource. Equal seeds and clocks give equal ids."""

    def __init__(self, seed: int = 0, clock: Clock | None = None) -> None:
        chance = Random(seed)
        super().__init__(
            clock or ManualClock(),
            entropy=chance.randrange(ids.ENTROPY_SPAN),
            stride=chance.randrange(ids.ENTROPY_SPAN) | 1,
        )
