"""What the HTTP edge needs of the runtime, as protocols. The runtime knows nothing of them.

JSON that is stored travels as bytes, never decoded on the way. Failures are the DomainErrors of
the contract; anything else is a defect and becomes a 500.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from perdure.ports import Clock, IdSource
from perdure.schema.approval.permission import (
    PermissionDecision,
    PermissionInput,
    PermissionRequest,
    Reply,
    SavedRule,
)
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.files.fs import EntryType, FileContent, FileEntry, Span
from perdure.schema.files.pty import PtyInfo, PtySize, PtyStart, PtyTicket
from perdure.schema.health import HealthDetail
from perdure.schema.ids import MessageID, PermissionID, ProjectID, PtyID, QuestionID, SessionID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.models.integration import Attempt, AttemptStatus, IntegrationInfo
from perdure.schema.models.model import ModelInfo, ModelRef, ProviderInfo
from perdure.schema.query import (
    MessageAnchor,
    MessageRows,
    Order,
    SessionAnchor,
    SessionQuery,
    SessionRows,
)
from perdure.schema.session.prompt import Delivery, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import RevertState, SessionInfo
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.settings.command import CommandInfo
from perdure.schema.settings.reference import ReferenceInfo
from perdure.schema.settings.skill import SkillInfo
from perdure.schema.settings.trust import TrustInfo
from perdure.server.session_services import (
    Deletions,
    Forks,
    Jobs,
    SessionChanges,
    SessionChildren,
    SessionRecovery,
    SessionTodos,
    SessionUsages,
    Snapshots,
)


class Reverts(Protocol):
    """Each raises SessionBusyError while the Session runs."""

    async def stage(
        self, session_id: SessionID, message_id: MessageID, /, *, files: bool
    ) -> RevertState: ...
    async def clear(self, session_id: SessionID) -> None: ...
    async def commit(self, session_id: SessionID) -> None: ...


class Health(Protocol):
    async def detail(self) -> HealthDetail: ...


class Sessions(Protocol):
    @property
    def revert(self) -> Reverts: ...
    async def create(
        self,
        *,
        id: SessionID | None,
        agent: str | None,
        model: ModelRef | None,
        location: LocationRef,
    ) -> SessionInfo:
        """The Session of this id if there is one, else a new one.

        A directory that cannot be a Location is an InvalidRequestError of field `location`.
        """
        ...

    async def exists(self, session_id: SessionID) -> bool: ...
    async def get(self, session_id: SessionID) -> bytes: ...
    async def list(
        self, query: SessionQuery, /, *, limit: int, anchor: SessionAnchor | None
    ) -> SessionRows: ...
    async def prompt(
        self,
        session_id: SessionID,
        prompt: PromptInput,
        /,
        *,
        id: MessageID | None,
        delivery: Delivery,
        resume: bool,
    ) -> AdmittedPrompt: ...
    async def messages(
        self, session_id: SessionID, *, limit: int, order: Order, anchor: MessageAnchor | None
    ) -> MessageRows: ...
    async def message(self, session_id: SessionID, message_id: MessageID, /) -> bytes: ...
    async def context(self, session_id: SessionID) -> tuple[bytes, ...]: ...
    async def provider_context(self, session_id: SessionID) -> bytes: ...
    async def history(
        self, session_id: SessionID, *, after: int, limit: int
    ) -> tuple[tuple[bytes, ...], bool]:
        """Public durable events with a seq greater than `after`, and whether there are more."""
        ...

    def events(self, session_id: SessionID, *, after: int) -> AsyncIterator[bytes]:
        """Replay, then follow, for ever. Each item is one write of complete frames."""
        ...

    def active(self) -> tuple[SessionID, ...]: ...
    async def interrupt(self, session_id: SessionID) -> None: ...
    async def compact(self, session_id: SessionID, *, instruction: str) -> None:
        """Return when there is a checkpoint, or nothing to condense.

        Whatever prevents it is a ServiceUnavailableError, and leaves everything as it was.
        """
        ...

    async def wait(self, session_id: SessionID) -> None: ...
    async def switch_agent(self, session_id: SessionID, agent: str, /) -> None: ...
    async def switch_model(self, session_id: SessionID, model: ModelRef, /) -> None: ...
    async def move(
        self, session_id: SessionID, destination: LocationRef, /, *, changes: bool
    ) -> None:
        """Raises SessionBusyError while the Session runs, MoveConflictError when it cannot be."""
        ...


class Inbox(Protocol):
    """What is not pending any more is a PromptSettledError."""

    async def list(self, session_id: SessionID) -> tuple[AdmittedPrompt, ...]: ...
    async def revise(
        self,
        session_id: SessionID,
        message_id: MessageID,
        /,
        *,
        prompt: PromptInput | None,
        delivery: Delivery | None,
    ) -> AdmittedPrompt: ...
    async def cancel(self, session_id: SessionID, message_id: MessageID, /) -> None: ...
    async def reorder(self, session_id: SessionID, message_ids: Sequence[MessageID], /) -> None: ...


class LiveSubscription(Protocol):
    @property
    def lagged(self) -> bool:
        """Whether it ended because this reader could not keep up."""
        ...

    async def next(self) -> bytes | None:
        """The frames since the last call, joined; None when there will be no more."""
        ...


class LiveHub(Protocol):
    def subscribe(
        self, location: LocationRef | None
    ) -> AbstractContextManager[LiveSubscription]: ...


class Locations(Protocol):
    """Each raises InvalidRequestError of field `location` for a directory that cannot be one."""

    async def info(self, ref: LocationRef) -> LocationInfo: ...
    async def agents(self, ref: LocationRef) -> tuple[AgentInfo, ...]: ...
    async def models(self, ref: LocationRef) -> tuple[ModelInfo, ...]: ...
    async def providers(self, ref: LocationRef) -> tuple[ProviderInfo, ...]: ...
    async def provider(self, ref: LocationRef, id: str, /) -> ProviderInfo: ...
    async def skills(self, ref: LocationRef) -> tuple[SkillInfo, ...]: ...
    async def references(self, ref: LocationRef) -> tuple[ReferenceInfo, ...]: ...
    async def commands(self, ref: LocationRef) -> tuple[CommandInfo, ...]: ...
    async def trust(self, ref: LocationRef) -> TrustInfo: ...


class Files(Protocol):
    """A path that leads nowhere is a NotFoundError, one that leads out an InvalidRequestError."""

    async def read(self, ref: LocationRef, path: str, span: Span | None, /) -> FileContent: ...
    async def list(self, ref: LocationRef, path: str, /) -> tuple[FileEntry, ...]: ...
    async def find(
        self, ref: LocationRef, query: str, /, *, type: EntryType | None, limit: int | None
    ) -> tuple[FileEntry, ...]: ...


class TerminalReader(Protocol):
    @property
    def cursor(self) -> int: ...
    @property
    def lagged(self) -> bool:
        """Whether it ended because this reader could not keep up."""
        ...

    def kept(self) -> str:
        """What was printed and is kept, from the cursor on."""
        ...

    async def next(self) -> str | None:
        """What was printed since; None when there will be no more."""
        ...

    async def write(self, data: bytes) -> None: ...


class Terminals(Protocol):
    """A terminal that is not there, or another Location's, is a PtyNotFoundError."""

    async def list(self, ref: LocationRef) -> tuple[PtyInfo, ...]: ...
    async def directory(self, ref: LocationRef, cwd: str | None, /) -> str: ...
    async def create(self, ref: LocationRef, start: PtyStart, /) -> PtyInfo: ...
    async def get(self, ref: LocationRef, id: PtyID, /) -> PtyInfo: ...
    async def update(
        self, ref: LocationRef, id: PtyID, /, *, title: str | None, size: PtySize | None
    ) -> PtyInfo: ...
    async def remove(self, ref: LocationRef, id: PtyID, /) -> None: ...
    async def ticket(self, ref: LocationRef, id: PtyID, /) -> PtyTicket: ...
    async def redeem(self, ref: LocationRef, id: PtyID, ticket: str, /) -> bool: ...
    async def reader(
        self, ref: LocationRef, id: PtyID, cursor: int | None, /
    ) -> Callable[[], AbstractContextManager[TerminalReader]]:
        """Attaching raises PtyNotFoundError and PtyExitedError."""
        ...


class TerminalEnvironment(Protocol):
    async def overlay(self, ref: LocationRef, directory: str) -> Mapping[str, str]:
        """Return the variables that plugins set for a new terminal in that directory."""
        ...


class Plugins(Protocol):
    @property
    def environment(self) -> TerminalEnvironment: ...


class Permissions(Protocol):
    """A Session that does not exist is a SessionNotFoundError."""

    async def create(
        self,
        session_id: SessionID,
        given: PermissionInput,
        /,
        *,
        id: PermissionID | None,
        agent: str | None,
    ) -> PermissionDecision: ...
    async def list(self, session_id: SessionID) -> tuple[PermissionRequest, ...]: ...
    async def get(
        self, session_id: SessionID, request_id: PermissionID, /
    ) -> PermissionRequest: ...
    async def reply(
        self,
        session_id: SessionID,
        request_id: PermissionID,
        reply: Reply,
        /,
        *,
        message: str | None,
    ) -> None: ...
    async def pending(self, ref: LocationRef) -> tuple[PermissionRequest, ...]: ...
    async def saved(self, project_id: ProjectID) -> tuple[SavedRule, ...]: ...
    async def remove_saved(self, rule_id: str) -> None: ...


class Questions(Protocol):
    """A Session that does not exist is a SessionNotFoundError."""

    async def list(self, session_id: SessionID) -> tuple[QuestionRequest, ...]: ...
    async def reply(
        self, session_id: SessionID, request_id: QuestionID, answers: Answers, /
    ) -> None: ...
    async def reject(self, session_id: SessionID, request_id: QuestionID, /) -> None: ...
    async def pending(self, ref: LocationRef) -> tuple[QuestionRequest, ...]: ...


class Integrations(Protocol):
    """Credentials that cannot be read or kept are a ServiceUnavailableError."""

    async def list(self, ref: LocationRef) -> tuple[IntegrationInfo, ...]: ...
    async def get(self, ref: LocationRef, integration_id: str, /) -> IntegrationInfo: ...
    async def connect_key(
        self, ref: LocationRef, integration_id: str, key: str, /, *, label: str | None
    ) -> None: ...
    async def connect_oauth(
        self,
        ref: LocationRef,
        integration_id: str,
        /,
        *,
        method_id: str,
        inputs: Mapping[str, str],
        label: str | None,
    ) -> Attempt: ...
    async def status(self, attempt_id: str) -> AttemptStatus: ...
    async def cancel(self, attempt_id: str) -> None: ...
    async def complete(self, attempt_id: str, code: str | None, /) -> None: ...
    async def relabel(self, credential_id: str, label: str, /) -> None: ...
    async def remove(self, credential_id: str) -> None: ...


class Services(Protocol):
    """What handlers use of a running instance."""

    @property
    def health(self) -> Health: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def changes(self) -> SessionChanges: ...
    @property
    def forks(self) -> Forks: ...
    @property
    def deletions(self) -> Deletions: ...
    @property
    def snapshots(self) -> Snapshots: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def todos(self) -> SessionTodos: ...
    @property
    def recovery(self) -> SessionRecovery: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def children(self) -> SessionChildren: ...
    @property
    def usage(self) -> SessionUsages: ...
    @property
    def hub(self) -> LiveHub: ...
    @property
    def locations(self) -> Locations: ...
    @property
    def files(self) -> Files: ...
    @property
    def terminals(self) -> Terminals: ...
    @property
    def permissions(self) -> Permissions: ...
    @property
    def questions(self) -> Questions: ...
    @property
    def integrations(self) -> Integrations: ...
    @property
    def ids(self) -> IdSource: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def plugins(self) -> Plugins: ...
