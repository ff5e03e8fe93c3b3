"""Which Sessions of all Locations and processes run or wait for a person."""

from perdure.core import limits
from perdure.ports import Database, Transaction
from perdure.runtime.human.permissions import Permissions
from perdure.runtime.human.questions import Questions
from perdure.runtime.session.recovery import SessionRecovery
from perdure.runtime.session.sessions import Sessions
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.session.attention import SessionAttention
from perdure.store.tables import attempt_table


async def list_attention(
    sessions: Sessions,
    permissions: Permissions,
    questions: Questions,
    *,
    recovery: SessionRecovery,
    database: Database,
) -> tuple[SessionAttention, ...]:
    """Those that wait for a person first."""
    running = frozenset(await sessions.list_active())
    asked = await permissions.list_everywhere()
    questioned = await questions.list_everywhere()

    async def load(tx: Transaction) -> list[SessionID]:
        return await attempt_table.list_waiting(tx, limit=limits.ATTENTION_SESSIONS_MAX)

    stopped = await database.read(load)
    waiting = dict.fromkeys(
        (*(it.session_id for it in asked), *(it.session_id for it in questioned), *stopped)
    )
    order = (*waiting, *(it for it in sorted(running) if it not in waiting))
    found: list[SessionAttention] = []
    for session_id in order[: limits.ATTENTION_SESSIONS_MAX]:
        each = SessionAttention(
            session_id=session_id,
            running=session_id in running,
            permissions=tuple(it for it in asked if it.session_id == session_id),
            questions=tuple(it for it in questioned if it.session_id == session_id),
        )
        if session_id in stopped:
            each = await _with_recovery(each, recovery)
        if each is not None:
            found.append(each)
    return tuple(found)


async def _with_recovery(
    each: SessionAttention, recovery: SessionRecovery
) -> SessionAttention | None:
    """The same with what is to be decided; None if the Session was deleted meanwhile."""
    try:
        info = await recovery.load_recovery(each.session_id)
    except SessionNotFoundError:
        return None
    if not info.waiting:
        return each
    return SessionAttention(
        session_id=each.session_id,
        running=each.running,
        permissions=each.permissions,
        questions=each.questions,
        recovery=info,
    )
