"""The Locations that are open, and what clients do by way of them.

Joined here and loaded with the engine. What makes up one Location stands in `location/`, what all
of them share in runtime.location_host.
"""

import secrets

from perdure.host.process import LocalProcesses
from perdure.location.git_changes import GitChanges
from perdure.location.location_map import LocationMap
from perdure.runtime.files import Files
from perdure.runtime.integrations import Integrations, LoginServices
from perdure.runtime.location_host import Shared, location_host
from perdure.runtime.locations import Locations
from perdure.runtime.moves import Moves
from perdure.runtime.parts import Parts
from perdure.runtime.permissions import Permissions
from perdure.runtime.questions import Questions
from perdure.runtime.terminals import Terminals
from perdure.schema.value import Value


class OpenLocations(Value, kw_only=True):
    map: LocationMap
    locations: Locations
    files: Files
    terminals: Terminals
    permissions: Permissions
    questions: Questions
    integrations: Integrations
    moves: Moves

    def close(self) -> None:
        self.integrations.close()
        self.map.close()


def join(parts: Parts, shared: Shared) -> OpenLocations:
    on, pending, sessions = parts.on, parts.pending, parts.sessions
    opened = LocationMap(location_host(parts, shared))
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
        moves=Moves(parts.store, opened, changes, on.clock),
    )


def _logins(parts: Parts, shared: Shared) -> LoginServices:
    return LoginServices(
        transport=shared.transport,
        clock=parts.on.clock,
        ids=parts.on.ids,
        entropy=secrets.token_bytes,
        start=lambda work: shared.background.start(work, name="logins"),
    )
