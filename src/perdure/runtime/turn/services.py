"""What it takes to run a Session, by drain or by compaction."""

from collections.abc import Awaitable, Callable

from perdure.host.process.orphans import Orphan
from perdure.location.registry import LocationRegistry
from perdure.ports import Chance, Clock, IdSource
from perdure.runtime.files.snapshots import FileSnapshots
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.ops.metrics import Metrics
from perdure.runtime.ops.provider_slots import ProviderSlots
from perdure.schema.ids import SessionID
from perdure.schema.value import Value
from perdure.store.log.event_store import EventStore
from perdure.tools.api.output_store import ToolOutputStore


class RunServices(Value, kw_only=True):
    store: EventStore
    locations: LocationRegistry
    hub: LiveHub
    outputs: ToolOutputStore
    snapshots: FileSnapshots
    clock: Clock
    ids: IdSource
    chance: Chance
    measures: Metrics
    slots: ProviderSlots
    end_orphans: Callable[[str], Awaitable[tuple[Orphan, ...]]]
    """End the children of a dead process; returns those that still run."""
    wake: Callable[[SessionID], None]
    """There may be work in a Session. Never waits."""
    closing: Callable[[], bool]
    """Whether runs end because this process does."""
