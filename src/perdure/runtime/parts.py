"""What the composition root joins: settings, foundations, and the parts that are always there."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from perdure.host.environment import Environment
from perdure.ports import Clock, Database, IdSource, Neighbours
from perdure.runtime.live_hub import LiveHub
from perdure.schema.ids import SessionID
from perdure.schema.permission import Headless
from perdure.schema.value import Value
from perdure.store.event_store import EventStore

if TYPE_CHECKING:
    from perdure.core.catalog import CatalogProvider
    from perdure.runtime.sessions import Sessions


class RuntimeSettings(Value, kw_only=True):
    environment: Environment
    data_dir: str
    default_directory: str
    headless: Headless = "wait"
    """What happens to a permission that must be asked: wait for a reply, or deny."""
    providers: "tuple[CatalogProvider, ...]" = ()
    """Models that the embedding program answers for."""
    local_models: bool = False
    """Whether to look for model servers running on this machine."""
    resumes: bool = True
    """Whether to run what was left waiting. If not, only what is asked for runs."""


class Foundations(Value, kw_only=True):
    """What differs between a server, a test and a simulation."""

    database: Database
    neighbours: Neighbours
    clock: Clock
    ids: IdSource


class Parts(Value, kw_only=True):
    """What the engine is built from."""

    settings: RuntimeSettings
    on: Foundations
    store: EventStore
    hub: LiveHub
    sessions: "Sessions"
    wake: Callable[[SessionID], None]
    """There may be work in a Session. Never waits."""
