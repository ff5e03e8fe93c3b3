"""What changes Sessions and their inboxes, as the stage has it: it keeps the calls."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from perdure.schema import codec
from perdure.schema.errors import MessageNotFoundError, PromptSettledError
from perdure.schema.ids import MessageID, ProjectID, Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import NO_TOKENS
from perdure.schema.query import MessageRow
from perdure.schema.session.prompt import Delivery, Prompt, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo, SessionTime
from perdure.schema.session.usage import SessionBudget, SessionUsage, UsageTotal


@dataclass(frozen=True, slots=True)
class StagedSnapshot:
    session: bytes
    messages: tuple[MessageRow, ...]
    has_previous: bool
    inbox: tuple[AdmittedPrompt, ...]
    seq: int


@dataclass(slots=True)
class StagedChanges:
    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    async def rename(self, session_id: SessionID, title: str) -> SessionInfo:
        self.calls.append(("rename", session_id, title))
        return _info(session_id, title)

    async def archive(self, session_id: SessionID) -> None:
        self.calls.append(("archive", session_id))

    async def unarchive(self, session_id: SessionID) -> None:
        self.calls.append(("unarchive", session_id))

    async def resume(self, session_id: SessionID) -> None:
        self.calls.append(("resume", session_id))

    async def fork(
        self,
        session_id: SessionID,
        *,
        id: SessionID | None,
        message_id: MessageID | None,
        seq: int | None,
    ) -> SessionInfo:
        self.calls.append(("fork", session_id, id, message_id, seq))
        return _info(id or SessionID("ses_fork"), "t")

    async def load_usage(self, session_id: SessionID) -> SessionUsage:
        self.calls.append(("of", session_id))
        used = UsageTotal(cost=0.5, tokens=NO_TOKENS, turns=2, models=())
        return SessionUsage(session=used, tree=used)

    async def set_budget(self, session_id: SessionID, budget: SessionBudget) -> SessionInfo:
        self.calls.append(("set_budget", session_id, budget))
        return _info(session_id, "t")

    async def delete(self, session_id: SessionID) -> None:
        self.calls.append(("delete", session_id))

    async def take(self, session_id: SessionID, *, limit: int) -> StagedSnapshot:
        self.calls.append(("take", session_id, limit))
        message = MessageRow(data=b'{"id":"msg_5"}', id=MessageID("msg_5"), seq=5)
        return StagedSnapshot(
            session=codec.encode(_info(session_id, "t")),
            messages=(message,),
            has_previous=True,
            inbox=(_waiting(session_id, MessageID("msg_6")),),
            seq=7,
        )

    async def list(self, session_id: SessionID) -> tuple[AdmittedPrompt, ...]:
        return (_waiting(session_id, MessageID("msg_6")),)

    async def revise(
        self,
        session_id: SessionID,
        message_id: MessageID,
        *,
        prompt: PromptInput | None,
        delivery: Delivery | None,
    ) -> AdmittedPrompt:
        self._check(session_id, message_id)
        self.calls.append(("revise", session_id, message_id, prompt, delivery))
        return _waiting(session_id, message_id)

    async def cancel(self, session_id: SessionID, message_id: MessageID) -> None:
        self._check(session_id, message_id)
        self.calls.append(("cancel", session_id, message_id))

    async def reorder(self, session_id: SessionID, message_ids: Sequence[MessageID]) -> None:
        self.calls.append(("reorder", session_id, tuple(message_ids)))

    def _check(self, session_id: SessionID, message_id: MessageID) -> None:
        if message_id == "msg_absent":
            raise MessageNotFoundError(session_id, message_id)
        if message_id == "msg_promoted":
            raise PromptSettledError(message_id, "promoted")


def _info(session_id: SessionID, title: str) -> SessionInfo:
    return SessionInfo(
        id=session_id,
        project_id=ProjectID("global"),
        cost=0,
        tokens=NO_TOKENS,
        time=SessionTime(created=1, updated=1),
        title=title,
        location=LocationRef("/work/here"),
    )


def _waiting(session_id: SessionID, message_id: MessageID) -> AdmittedPrompt:
    return AdmittedPrompt(
        admitted_seq=Seq(6),
        id=message_id,
        session_id=session_id,
        prompt=Prompt(text="later"),
        delivery="queue",
        time_created=1,
    )
