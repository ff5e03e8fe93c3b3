"""What the composition root joins: settings, foundations, and the parts that are always there."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from msgspec import field

from perdure.host.environment import Environment
from perdure.ports import Chance, Clock, Database, DetachedProcesses, IdSource, Processes
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.ops.metrics import Metrics, Telemetry
from perdure.schema.approval.permission import Headless
from perdure.schema.ids import SessionID
from perdure.schema.value import Value
from perdure.store.log.event_store import EventStore
from perdure.store.tables.pending_table import PendingRequests

if TYPE_CHECKING:
    from perdure.core.models.catalog import CatalogProvider
    from perdure.runtime.session.sessions import Sessions


class RuntimeSettings(Value, kw_only=True):
    environment: Environment
    data_dir: str
    default_directory: str
    headless: Headless = "wait"
    """What happens to a permission that must be asked: wait for a reply, or deny."""
    permission_timeout: float | None = None
    """Seconds to wait for a person's reply; then it is denied. None waits for ever."""
    providers: "tuple[CatalogProvider, ...]" = ()
    """Models that the embedding program answers for."""
    local_models: bool = False
    """Whether to look for model servers running on this machine."""
    models_url: str | None = None
    """Where facts about models are fetched from, once models are used; None fetches nothing."""
    resumes: bool = True
    """Whether to run what was left waiting. If not, only what is asked for runs."""
    telemetry: Telemetry | None = None
    """Where figures and spans go beyond this process."""
    installed_plugins: bool = False
    """Whether to add the plugins that installed packages offer."""


class Platform(Value, kw_only=True):
    """What differs between a server, a test and a simulation."""

    database: Database
    processes: Processes
    clock: Clock
    ids: IdSource
    chance: Chance = field(default_factory=partial(Random, 0))
    measures: Metrics = field(default_factory=Metrics)
    detached: DetachedProcesses | None = None
    """What background jobs run as; processes of this machine, if it is not said."""


class EngineDeps(Value, kw_only=True):
    """What the engine is built from."""

    settings: RuntimeSettings
    on: Platform
    store: EventStore
    hub: LiveHub
    sessions: "Sessions"
    coordinator: RunCoordinator
    wake: Callable[[SessionID], None]
    """There may be work in a Session. Never waits."""
    closing: Callable[[], bool]
    """Whether runs end because this process does."""
    pending: PendingRequests
