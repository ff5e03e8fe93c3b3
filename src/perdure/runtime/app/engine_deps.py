"""The services that the engine is built from; they exist in every process."""

from perdure.runtime.app.platform import Platform
from perdure.runtime.app.settings import RuntimeSettings
from perdure.runtime.coordination.coordinator import RunCoordinator
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.live_hub import LiveHub
from perdure.runtime.session.sessions import Sessions
from perdure.schema.value import Value
from perdure.store.log.event_store import EventStore
from perdure.store.tables.pending_table import PendingRequests


class EngineDeps(Value, kw_only=True):
    settings: RuntimeSettings
    platform: Platform
    store: EventStore
    hub: LiveHub
    sessions: Sessions
    coordinator: RunCoordinator
    activity: SessionActivity
    pending: PendingRequests
