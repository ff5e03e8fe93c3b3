"""What the HTTP edge needs of the runtime, as protocols. The runtime knows nothing of them.

JSON that is stored travels as bytes, never decoded on the way. Failures are the DomainErrors of
the contract; anything else is a defect and becomes a 500.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from perdure.ports import Clock, IdSource
from perdure.schema.agent import AgentInfo
from perdure.schema.ids import MessageID, PermissionID, ProjectID, QuestionID, SessionID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.model import ModelInfo, ModelRef, ProviderInfo
from perdure.schema.permission import (
    PermissionDecision,
    PermissionInput,
    PermissionRequest,
    Reply,
    SavedRule,
)
from perdure.schema.prompt import Delivery, PromptInput
from perdure.schema.query import (
    MessageAnchor,
    MessageRows,
    Order,
    SessionAnchor,
    SessionQuery,
    SessionRows,
)
from perdure.schema.question import Answers, QuestionRequest
from perdure.schema.reference import ReferenceInfo
from perdure.schema.session import RevertState, SessionInfo
from perdure.schema.session_input import AdmittedPrompt
from perdure.schema.skill import SkillInfo
from perdure.schema.value import Value


class Reverts(Protocol):
    """Each raises SessionBusyError while the Session runs."""

    async def stage(
        self, session_id: SessionID, message_id: MessageID, /, *, files: bool
    ) -> RevertState: ...
    async def clear(self, session_id: SessionID) -> None: ...
    async def commit(self, session_id: SessionID) -> None: ...


if TYPE_CHECKING:
    from perdure.runtime.runtime import Runtime


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
    async def compact(self, session_id: SessionID) -> None:
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


class Services(Value, kw_only=True):
    sessions: Sessions
    live: LiveHub
    locations: Locations
    permissions: Permissions
    questions: Questions
    ids: IdSource
    clock: Clock


def of(runtime: "Runtime") -> Services:
    """What a running instance offers to the HTTP edge."""
    return Services(
        sessions=runtime.sessions,
        live=runtime.hub,
        locations=runtime.locations,
        permissions=runtime.permissions,
        questions=runtime.questions,
        ids=runtime.ids,
        clock=runtime.clock,
    )
