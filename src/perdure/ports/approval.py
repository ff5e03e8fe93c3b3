"""People, as a tool meets them: what it may do, and what it wants to know.

Who answers, and in which process, a tool never learns.
"""

from collections.abc import Callable
from typing import Protocol

from perdure.core.approval.rules import ResourceParts
from perdure.schema.approval.permission import PermissionSource
from perdure.schema.approval.question import Answers, Question, QuestionSource
from perdure.schema.codec import JsonObject
from perdure.schema.ids import SessionID
from perdure.schema.value import Value


class PermissionAsk(Value, kw_only=True):
    """What a tool wants to do, for whom."""

    session_id: SessionID
    agent: str
    action: str
    resources: tuple[str, ...]
    save: tuple[str, ...] = ()
    metadata: JsonObject | None = None
    source: PermissionSource | None = None
    protected: bool = False
    """Only a person may allow it, each time; see core.approval.rules."""
    parts: ResourceParts | None = None
    above: tuple[str, ...] = ()
    """The agents of those who called this Session; what they may not do, it may not."""
    refine: "Callable[[], PermissionAsk] | None" = None
    """The same in more detail, made only when rules tell one resource from another."""


class PermissionBlockedError(Exception):
    """A rule says no. The model is told which action and resource."""


class PermissionCorrectedError(Exception):
    """A person said no and told the model what to do instead; the message is that feedback."""


class PermissionDeclinedError(Exception):
    """A person said no. The run stops."""


class PermissionGate(Protocol):
    async def require(self, ask: PermissionAsk) -> None:
        """Return when allowed; else one of the Permission errors. May wait for a person."""
        ...


class QuestionAsk(Value, kw_only=True):
    """What a tool wants to know, for whom."""

    session_id: SessionID
    questions: tuple[Question, ...]
    tool: QuestionSource | None = None


class QuestionBlockedError(Exception):
    """Nobody can be asked. The model is told why."""


class QuestionRejectedError(Exception):
    """A person would not answer. The run stops."""


class Questioner(Protocol):
    async def ask(self, ask: QuestionAsk) -> Answers:
        """Wait for a person's answers, one list for each question; else a Question error."""
        ...
