"""The Locations that are open, and what clients do by way of them.

Joined here and loaded with the engine. What makes up one Location stands in `location/`, what all
of them share in runtime.app.location_host.
"""

import secrets

from perdure.host.process.runner import LocalProcesses
from perdure.location.project.git_changes import GitChanges
from perdure.location.registry import LocationRegistry
from perdure.runtime.app.location_host import LocationDeps, location_host
from perdure.runtime.app.parts import EngineDeps
from perdure.runtime.human.permissions import Permissions
from perdure.runtime.human.questions import Questions
from perdure.runtime.locations.api import Files, Locations
from perdure.runtime.locations.integrations import Integrations, LoginServices
from perdure.runtime.locations.terminals import Terminals
from perdure.runtime.session.move import SessionMoves
from perdure.schema.value import Value


class OpenLocations(Value, kw_only=True):
    map: LocationRegistry
    locations: Locations
    files: Files
    terminals: Terminals
    permissions: Permissions
    questions: Questions
    integrations: Integrations
    moves: SessionMoves

    def close(self) -> None:
        self.integrations.close()
        self.map.close()


def join(parts: EngineDeps, shared: LocationDeps) -> OpenLocations:
    on, pending, sessions = parts.on, parts.pending, parts.sessions
    opened = LocationRegistry(location_host(parts, shared))
    changes = GitChanges(LocalProcesses(), parts.settings.environment.variables)
    return OpenLocations(
        map=opened,
        locations=Locations(opened),
        files=Files(opened),
        terminals=Terminals(opened, secrets.token_bytes),
        permissions=Permissions(
            sessions, opened, shared.saved_rules, pending, database=on.database
        ),
        questions=Questions(sessions, opened, pending, database=on.database),
        integrations=Integrations(opened, shared.credentials, _logins(parts, shared)),
        moves=SessionMoves(parts.store, opened, changes, on.clock),
    )


def _logins(parts: EngineDeps, shared: LocationDeps) -> LoginServices:
    return LoginServices(
        transport=shared.transport,
        clock=parts.on.clock,
        ids=parts.on.ids,
        entropy=secrets.token_bytes,
        start=lambda work: shared.background.start(work, name="logins"),
    )
