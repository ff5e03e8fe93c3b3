"""The services of a staged instance, as the server takes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perdure.ports import Clock, IdSource
from perdure.schema.location import LocationRef
from perdure.server import services as offered
from perdure.server import session_services as of_sessions


class StagedPlugins:
    """Plugins that set no variables for a terminal."""

    @property
    def environment(self) -> "StagedPlugins":
        return self

    async def overlay(self, ref: LocationRef, directory: str) -> Mapping[str, str]:
        del ref, directory
        return {}


@dataclass(slots=True, kw_only=True)
class StagedServices:
    health: offered.Health
    sessions: offered.Sessions
    changes: of_sessions.SessionChanges
    forks: of_sessions.Forks
    deletions: of_sessions.Deletions
    snapshots: of_sessions.Snapshots
    inbox: offered.Inbox
    todos: of_sessions.SessionTodos
    recovery: of_sessions.SessionRecovery
    jobs: of_sessions.Jobs
    children: of_sessions.SessionChildren
    usage: of_sessions.SessionUsages
    hub: offered.LiveHub
    locations: offered.Locations
    files: offered.Files
    terminals: offered.Terminals
    permissions: offered.Permissions
    questions: offered.Questions
    integrations: offered.Integrations
    ids: IdSource
    clock: Clock
    plugins: offered.Plugins = field(default_factory=StagedPlugins)
