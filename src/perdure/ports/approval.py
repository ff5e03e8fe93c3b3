"""Ports for asking a person: permissions and questions.

A tool does not know who answers, or in which process.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from perdure.core.approval.rules import ResourceParts
from perdure.schema.approval.permission import Effect, PermissionSource, ProposedChange
from perdure.schema.approval.question import Answers, Question, QuestionSource
from perdure.schema.codec import JsonObject
from perdure.schema.ids import SessionID
from perdure.schema.value import Value


class PermissionAsk(Value, kw_only=True):
    """A permission request of a tool."""

    session_id: SessionID
    agent: str
    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] = ()
    metadata: JsonObject | None = None
    source: PermissionSource | None = None
    protected: bool = False
    """Whether a person is asked unless the user named it; see core.approval.protected_paths.

    Without `save`, an approval is not remembered.
    """
    contained: bool = False
    """Whether it runs in a sandbox, so that it needs no question if no rule is about it."""
    parts: ResourceParts | None = None
    above: tuple[str, ...] = ()
    """The agents that called this Session, up to the root; their rules apply too."""
    changes: Callable[[], Awaitable[tuple[ProposedChange, ...]]] | None = None
    """Computes what it would do to files; called only if a person is asked."""
    refine: "Callable[[], PermissionAsk] | None" = None
    """Builds a more detailed request, used only if rules distinguish resources."""


class PermissionBlockedError(Exception):
    """A rule denies it. The model is told which action and resource."""


class PermissionCorrectedError(Exception):
    """A person declined with feedback for the model, which is the message."""


class PermissionDeclinedError(Exception):
    """A person declined. The run stops."""


class PermissionUnattendedError(PermissionDeclinedError):
    """A person is needed, none is there, and the run is to fail then. The message says for what."""


class PermissionGate(Protocol):
    async def require(self, ask: PermissionAsk) -> None:
        """Return when allowed; otherwise raise a Permission error. May wait for a person."""
        ...

    async def evaluate(self, ask: PermissionAsk) -> Effect:
        """What is decided now, without asking a person."""
        ...

    async def effects(self, ask: PermissionAsk) -> Callable[[str], Effect]:
        """As `evaluate`, for any number of resources of the action."""
        ...


class QuestionAsk(Value, kw_only=True):
    """Questions of a tool."""

    session_id: SessionID
    questions: tuple[Question, ...]
    tool: QuestionSource | None = None


class QuestionBlockedError(Exception):
    """No person can be asked. The model is told why."""


class QuestionRejectedError(Exception):
    """A person declined to answer. The run stops."""


class QuestionUnattendedError(QuestionRejectedError):
    """A person is needed, none is there, and the run is to fail then."""


class Questioner(Protocol):
    async def ask(self, ask: QuestionAsk) -> Answers:
        """Wait for a person's answers, one list per question, or raise a Question error."""
        ...
