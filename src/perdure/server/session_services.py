"""What the HTTP edge needs of the runtime about what else there is of one Session.

The rest, and how all of it comes together, is server.services.
"""

from typing import Protocol

from perdure.schema.ids import JobID, MessageID, SessionID
from perdure.schema.query import MessageRow
from perdure.schema.session.job import JobInfo, JobOutput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.recovery import Decision, RecoveryInfo
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.todo import Todos
from perdure.schema.session.usage import SessionBudget, SessionUsage


class SessionChanges(Protocol):
    async def rename(self, session_id: SessionID, title: str, /) -> SessionInfo: ...
    async def archive(self, session_id: SessionID) -> None: ...
    async def unarchive(self, session_id: SessionID) -> None: ...
    async def resume(self, session_id: SessionID) -> None: ...


class Jobs(Protocol):
    """A job that is not the Session's, or one below it has, is a JobNotFoundError."""

    async def list(self, session_id: SessionID) -> tuple[JobInfo, ...]: ...
    async def get(self, session_id: SessionID, job_id: JobID, /) -> JobOutput: ...
    async def cancel(self, session_id: SessionID, job_id: JobID, /, *, quiet: bool) -> JobInfo:
        """Return when it is over; `quiet` when the Session need not be told."""
        ...


class Forks(Protocol):
    async def fork(
        self,
        session_id: SessionID,
        *,
        id: SessionID | None,
        message_id: MessageID | None,
        seq: int | None,
    ) -> SessionInfo: ...


class Deletions(Protocol):
    async def delete(self, session_id: SessionID) -> None: ...


class Snapshot(Protocol):
    @property
    def session(self) -> bytes: ...
    @property
    def messages(self) -> tuple[MessageRow, ...]: ...
    @property
    def has_previous(self) -> bool: ...
    @property
    def inbox(self) -> tuple[AdmittedPrompt, ...]: ...
    @property
    def seq(self) -> int: ...


class Snapshots(Protocol):
    async def take(self, session_id: SessionID, *, limit: int) -> Snapshot: ...


class SessionTodos(Protocol):
    async def load_todos(self, session_id: SessionID) -> Todos: ...


class SessionChildren(Protocol):
    async def list_children(self, session_id: SessionID) -> tuple[bytes, ...]: ...


class SessionUsages(Protocol):
    async def load_usage(self, session_id: SessionID) -> SessionUsage: ...
    async def set_budget(self, session_id: SessionID, budget: SessionBudget, /) -> SessionInfo: ...


class SessionRecovery(Protocol):
    async def load_recovery(self, session_id: SessionID) -> RecoveryInfo: ...
    async def decide(self, session_id: SessionID, decision: Decision, /) -> None:
        """Raises NothingToDecideError when the Session does not wait for it."""
        ...
