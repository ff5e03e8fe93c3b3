"""The `session` projection: the public JSON of each Session, and columns to filter lists by."""

import logging
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import UNSET

from perdure.core import limits
from perdure.ports import Row, SqlValue, Transaction
from perdure.schema import codec, manifest
from perdure.schema.errors import DamagedRowError, SessionNotFoundError
from perdure.schema.ids import ProjectID, Seq, SessionID
from perdure.schema.query import SessionQuery
from perdure.schema.session.event import Renamed
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.tables import row_checks

logger = logging.getLogger(__name__)

_TABLE: Final = "session"
_DATA: Final = "SELECT data FROM session WHERE id = :id"
_INSERT: Final = """
    INSERT INTO session
        (id, project_id, directory, workspace_id, subpath, title, time_created, reverting,
        archived, parent_id, data)
    VALUES (:id, :project_id, :directory, :workspace_id, :subpath, :title, :time_created,
        :reverting, :archived, :parent_id, :data)
"""
_UPDATE: Final = """
    UPDATE session SET directory = :directory, workspace_id = :workspace_id, subpath = :subpath,
        title = :title, reverting = :reverting, archived = :archived, data = :data
    WHERE id = :id
"""


_FAMILY: Final = """
    WITH RECURSIVE up (id, parent_id) AS (
        SELECT id, parent_id FROM session WHERE id = :id
        UNION SELECT above.id, above.parent_id
        FROM session AS above JOIN up ON above.id = up.parent_id
    ),
    down (id) AS (
        SELECT id FROM session WHERE id = :id
        UNION SELECT id FROM up WHERE parent_id IS NULL OR parent_id NOT IN (SELECT id FROM up)
        UNION SELECT below.id FROM session AS below JOIN down ON below.parent_id = down.id
    )
    SELECT id, data FROM session WHERE id IN (SELECT id FROM down)
"""
_DESCENDANTS: Final = """
    WITH RECURSIVE down (id) AS (
        SELECT id FROM session WHERE parent_id = :id
        UNION SELECT below.id FROM session AS below JOIN down ON below.parent_id = down.id
    )
    SELECT id FROM down WHERE id <> :id
"""
_ANCESTORS: Final = """
    WITH RECURSIVE up (id, parent_id) AS (
        SELECT id, parent_id FROM session WHERE id = :id
        UNION SELECT above.id, above.parent_id
        FROM session AS above JOIN up ON above.id = up.parent_id
    )
    SELECT id FROM up WHERE id <> :id
"""


_PLACES: Final = """
    SELECT project_id, directory, coalesce(subpath, ''), min(time_created),
        max(json_extract(CAST(data AS TEXT), '$.time.updated'))
    FROM session WHERE :project IS NULL OR project_id = :project
    GROUP BY project_id, directory, coalesce(subpath, '')
    ORDER BY max(time_created) DESC LIMIT :limit
"""


class SessionFilter(Value, kw_only=True):
    directory: str | None = None
    project: str | None = None
    workspace: str | None = None
    subpath: str | None = None
    search: str | None = None
    archived: bool | None = None


def make_filter(query: SessionQuery) -> SessionFilter:
    return SessionFilter(
        directory=query.directory,
        project=query.project,
        workspace=query.workspace,
        subpath=query.subpath,
        search=query.search,
        archived=query.archived,
    )


class SessionRow(Value):
    id: SessionID
    time_created: int
    place: int
    """Tells in which order Sessions of one millisecond were created."""
    data: bytes


class SessionPlace(Value):
    """Where a page begins: behind this Session, which may be deleted by now."""

    time_created: int
    place: int
    id: SessionID


class ProjectPlace(Value, kw_only=True):
    """A directory in which Sessions of a project worked."""

    project_id: ProjectID
    root: str
    """The root of the project there."""
    created: int
    updated: int


async def insert(tx: Transaction, info: SessionInfo) -> None:
    parent = None if info.parent_id is UNSET else info.parent_id
    kept = {"project_id": info.project_id, "time_created": info.time.created, "parent_id": parent}
    await tx.execute(_INSERT, _columns(info) | kept)


async def update(tx: Transaction, info: SessionInfo) -> None:
    await tx.execute(_UPDATE, _columns(info))


async def load_json(tx: Transaction, session_id: SessionID) -> bytes | None:
    """The public JSON, or None when there is no such Session."""
    rows = await tx.fetch(_DATA, {"id": session_id})
    return row_checks.require_json(rows[0][0], session_id, table=_TABLE) if rows else None


async def is_reverting(tx: Transaction, session_id: SessionID) -> bool:
    """Whether a revert is staged."""
    rows = await tx.fetch(
        "SELECT 1 FROM session INDEXED BY session_reverting WHERE reverting = 1 AND id = :id",
        {"id": session_id},
    )
    return bool(rows)


async def is_archived(tx: Transaction, session_id: SessionID) -> bool:
    rows = await tx.fetch(
        "SELECT 1 FROM session WHERE id = :id AND archived = 1", {"id": session_id}
    )
    return bool(rows)


async def load(tx: Transaction, session_id: SessionID) -> SessionInfo | None:
    rows = await tx.fetch(_DATA, {"id": session_id})
    if not rows:
        return None
    return row_checks.decode_row(SessionInfo, rows[0][0], session_id, table=_TABLE)


async def require(tx: Transaction, session_id: SessionID) -> SessionInfo:
    """As `load`, but raises SessionNotFoundError when there is no such Session."""
    found = await load(tx, session_id)
    if found is None:
        raise SessionNotFoundError(session_id)
    return found


async def list_places(
    tx: Transaction, *, project_id: ProjectID | None = None
) -> list[ProjectPlace]:
    """The places of one project or of all, the one with the newest Session first."""
    given = {"project": project_id, "limit": limits.PROJECT_PLACES_MAX}
    found: list[ProjectPlace] = []
    for project, directory, subpath, created, updated in await tx.fetch(_PLACES, given):
        assert isinstance(created, int)
        found.append(
            ProjectPlace(
                project_id=ProjectID(str(project)),
                root=str(directory).removesuffix(f"/{subpath}") if subpath else str(directory),
                created=created,
                updated=updated if isinstance(updated, int) else created,
            )
        )
    return found


async def children(tx: Transaction, session_id: SessionID) -> list[SessionID]:
    """The direct children of a Session, oldest first."""
    rows = await tx.fetch(
        "SELECT id FROM session WHERE parent_id = :id ORDER BY rowid", {"id": session_id}
    )
    return [SessionID(str(row[0])) for row in rows]


async def descendants(tx: Transaction, session_id: SessionID) -> list[SessionID]:
    """Every Session below this one: its children, then theirs, and so on."""
    return [SessionID(str(row[0])) for row in await tx.fetch(_DESCENDANTS, {"id": session_id})]


async def ancestors(tx: Transaction, session_id: SessionID) -> list[SessionID]:
    """Every Session above this one, from its parent to the root."""
    return [SessionID(str(row[0])) for row in await tx.fetch(_ANCESTORS, {"id": session_id})]


async def was_renamed(tx: Transaction, session_id: SessionID, *, before: Seq) -> bool:
    """Whether an event before that sequence changed the title."""
    rows = await tx.fetch(
        "SELECT 1 FROM event WHERE session_id = :id AND type = :type AND seq < :before LIMIT 1",
        {"id": session_id, "type": manifest.BY_SHAPE[Renamed].stored, "before": before},
    )
    return bool(rows)


async def load_family(tx: Transaction, session_id: SessionID) -> list[SessionInfo]:
    """All Sessions of a tree: the root above `session_id`, and all its descendants."""
    rows = await tx.fetch(_FAMILY, {"id": session_id})
    return [
        row_checks.decode_row(SessionInfo, stored, SessionID(str(found)), table=_TABLE)
        for found, stored in rows
    ]


async def page(
    tx: Transaction,
    wanted: SessionFilter,
    *,
    newest_first: bool,
    limit: int,
    anchor: SessionPlace | None,
) -> list[SessionRow]:
    """Rows in the order of their creation, starting after `anchor` in that direction.

    A row that cannot be read is left out and logged.
    """
    found: list[SessionRow] = []
    after = None if anchor is None else (anchor.time_created, await _find_place(tx, anchor))
    while True:
        missing = limit - len(found)
        rows = await _rows(tx, wanted, newest_first=newest_first, limit=missing, anchor=after)
        found += [row for row in map(_check_row, rows) if row is not None]
        if len(found) == limit or len(rows) < missing:
            return found
        _, time, place, _ = rows[-1]
        after = time, place


async def _find_place(tx: Transaction, anchor: SessionPlace) -> SqlValue:
    """The place of a row now: rebuilt projections may be numbered anew."""
    rows = await tx.fetch("SELECT rowid FROM session WHERE id = :id", {"id": anchor.id})
    return rows[0][0] if rows else anchor.place


async def _rows(
    tx: Transaction,
    wanted: SessionFilter,
    *,
    newest_first: bool,
    limit: int,
    anchor: tuple[SqlValue, SqlValue] | None,
) -> Sequence[Row]:
    conditions, parameters = _conditions(wanted)
    if anchor is not None:
        sign = "<" if newest_first else ">"
        conditions.append(f"(time_created, rowid) {sign} (:anchor_time, :anchor_place)")
        parameters |= {"anchor_time": anchor[0], "anchor_place": anchor[1]}
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    direction: Literal["DESC", "ASC"] = "DESC" if newest_first else "ASC"
    return await tx.fetch(
        f"SELECT id, time_created, rowid, data FROM session {where}"
        f" ORDER BY time_created {direction}, rowid {direction} LIMIT :limit",
        parameters | {"limit": limit},
    )


def _check_row(row: Row) -> SessionRow | None:
    session_id, time, place, stored = row
    try:
        row_checks.decode_row(SessionInfo, stored, SessionID(str(session_id)), table=_TABLE)
    except DamagedRowError as error:
        logger.warning("a damaged session was left out of a list: %s", error.message)
        return None
    assert isinstance(stored, bytes)
    assert isinstance(place, int)
    created = time if isinstance(time, int) else 0
    return SessionRow(SessionID(str(session_id)), created, place, stored)


def _conditions(wanted: SessionFilter) -> tuple[list[str], dict[str, SqlValue]]:
    exact = {
        "directory": wanted.directory,
        "project_id": wanted.project,
        "workspace_id": wanted.workspace,
        "subpath": wanted.subpath,
        "archived": wanted.archived,
    }
    parameters: dict[str, SqlValue] = {k: v for k, v in exact.items() if v is not None}
    conditions = [f"{name} = :{name}" for name in parameters]
    if wanted.search:
        conditions.append("title LIKE :search ESCAPE '\\'")
        parameters["search"] = f"%{_escaped(wanted.search)}%"
    return conditions, parameters


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _columns(info: SessionInfo) -> dict[str, SqlValue]:
    workspace = info.location.workspace_id
    return {
        "id": info.id,
        "directory": info.location.directory,
        "workspace_id": None if workspace is UNSET else workspace,
        "subpath": "" if info.subpath is UNSET else info.subpath,
        "title": info.title,
        "reverting": info.revert is not UNSET,
        "archived": info.time.archived is not UNSET,
        "data": codec.encode(info),
    }
