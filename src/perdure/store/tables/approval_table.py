"""Saved approvals: what a user allowed for a Session, an agent, a place, or everything."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from perdure.ports import Database, IdSource, Row, Transaction
from perdure.schema.approval.permission import ApprovalScope, SavedPlace, SavedRule, Scope
from perdure.schema.ids import ProjectID, SessionID

_EVERYWHERE: Final = "*"
_COLUMNS: Final = (
    "id, project_id, place, directory, session_id, agent, action, resource, time_expires"
)


class SavedApprovals:
    def __init__(self, database: Database, ids: IdSource) -> None:
        self._database = database
        self._ids = ids

    async def list(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        """The approvals of a project and those for everything, oldest first.

        Also those that count no longer.
        """

        async def job(tx: Transaction) -> Sequence[Row]:
            return await tx.fetch(
                f"SELECT {_COLUMNS} FROM approval"
                " WHERE project_id = :project_id OR place = :everywhere ORDER BY rowid",
                {"project_id": project_id, "everywhere": _EVERYWHERE},
            )

        return tuple(map(_read, await self._database.read(job)))

    async def list_applying(
        self, place: str, *, session_id: SessionID, agent: str, now: int
    ) -> tuple[SavedRule, ...]:
        """The approvals that count for an agent of a Session at a place, oldest first."""

        async def job(tx: Transaction) -> Sequence[Row]:
            return await tx.fetch(
                f"SELECT {_COLUMNS} FROM approval"
                " WHERE place IN (:place, :everywhere) AND session_id IN ('', :session_id)"
                " AND agent IN ('', :agent) AND (time_expires IS NULL OR time_expires > :now)"
                " ORDER BY rowid",
                {
                    "place": place,
                    "everywhere": _EVERYWHERE,
                    "session_id": session_id,
                    "agent": agent,
                    "now": now,
                },
            )

        return tuple(map(_read, await self._database.read(job)))

    async def add(
        self, place: SavedPlace, scope: ApprovalScope, *, action: str, resources: tuple[str, ...]
    ) -> None:
        """Save an approval for each resource; one that is there gets the new time."""
        reach = scope.reach

        async def job(tx: Transaction) -> None:
            for resource in resources:
                await tx.execute(
                    f"INSERT INTO approval ({_COLUMNS})"
                    " VALUES (:id, :project_id, :place, :directory, :session_id, :agent, :action,"
                    " :resource, :expires)"
                    " ON CONFLICT DO UPDATE SET time_expires = excluded.time_expires",
                    {
                        "id": self._ids.named("psv"),
                        "project_id": place.project_id,
                        "place": _EVERYWHERE if reach == "global" else place.key,
                        "directory": "" if reach == "global" else place.directory,
                        "session_id": scope.session_id if reach == "session" else "",
                        "agent": scope.agent if reach == "agent" else "",
                        "action": action,
                        "resource": resource,
                        "expires": scope.expires,
                    },
                )

        await self._database.write(job)

    async def remove(self, rule_id: str) -> None:
        await self._database.write(
            lambda tx: tx.execute("DELETE FROM approval WHERE id = :id", {"id": rule_id})
        )


def _read(row: Row) -> SavedRule:
    rule_id, project_id, place, directory, session_id, agent, action, resource, expires = row
    return SavedRule(
        id=str(rule_id),
        project_id=ProjectID(str(project_id)),
        action=str(action),
        resource=str(resource),
        scope=_scope(str(place), str(session_id), str(agent)) or UNSET,
        directory=str(directory) or UNSET,
        session_id=SessionID(str(session_id)) if session_id else UNSET,
        agent=str(agent) or UNSET,
        expires=int(expires) if isinstance(expires, int) else UNSET,
    )


def _scope(place: str, session_id: str, agent: str) -> Scope | None:
    """The scope of a row; None for one of an older version, which has no place."""
    if not place:
        return None
    if place == _EVERYWHERE:
        return "global"
    if session_id:
        return "session"
    return "agent" if agent else "project"
