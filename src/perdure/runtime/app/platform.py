"""The platform of a runtime: the ports that differ between a server, a test and a simulation."""

from functools import partial
from random import Random

from msgspec import field

from perdure.core import limits
from perdure.ports import Chance, Clock, Database, DetachedProcesses, IdSource, Processes
from perdure.runtime.ops.metrics import Metrics
from perdure.schema.value import Value


class Platform(Value, kw_only=True):
    database: Database
    processes: Processes
    clock: Clock
    ids: IdSource
    chance: Chance = field(default_factory=partial(Random, 0))
    metrics: Metrics = field(default_factory=Metrics)
    detached: DetachedProcesses | None = None
    """Runs background jobs; None: processes of this machine."""
    piece_events_max: int = limits.APPEND_EVENTS_MAX
    """How many facts of a step share a transaction at most; a test has them split early."""
    children_directory: str | None = None
    """Where children are recorded, to be ended if this process dies; None records nothing."""
