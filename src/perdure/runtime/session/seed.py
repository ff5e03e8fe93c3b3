"""Builds the record that a new Session is created with."""

from typing import Self

from msgspec import UNSET, UnsetType

from perdure.core.session import title as titles
from perdure.runtime.session.own_fields import NO_OWN_FIELDS, OwnFields
from perdure.schema.ids import ProjectID, SessionID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.models.model import NO_TOKENS, ModelRef
from perdure.schema.session.event import SessionSeed
from perdure.schema.session.session import SessionInfo, SessionTime
from perdure.schema.value import Value
from perdure.version import __version__


class SessionPlace(Value):
    """Where a Session works: its Location, and the project that the Location is in."""

    location: LocationRef
    project_id: ProjectID
    subpath: str

    @classmethod
    def from_location(cls, info: LocationInfo) -> Self:
        return cls(info.ref, info.project.id, info.subpath)

    @classmethod
    def from_session(cls, session: SessionInfo) -> Self:
        subpath = "" if session.subpath is UNSET else session.subpath
        return cls(session.location, session.project_id, subpath)


def build_seed(
    session_id: SessionID,
    place: SessionPlace,
    *,
    title: str,
    now: int,
    agent: str | UnsetType = UNSET,
    model: ModelRef | UnsetType = UNSET,
    parent_id: SessionID | UnsetType = UNSET,
    own: OwnFields = NO_OWN_FIELDS,
) -> SessionSeed:
    return SessionSeed(
        id=session_id,
        slug=titles.make_slug(session_id),
        project_id=place.project_id,
        workspace_id=place.location.workspace_id,
        directory=place.location.directory,
        path=place.subpath,
        title=title,
        parent_id=parent_id,
        agent=agent,
        model=model,
        metadata=own.metadata,
        permissions=own.permissions,
        version=__version__,
        cost=0,
        tokens=NO_TOKENS,
        time=SessionTime(created=now, updated=now),
    )
