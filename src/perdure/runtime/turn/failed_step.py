"""Failed steps: how a turn that could not be sent becomes visible in the log."""

from msgspec import UNSET, UnsetType

from perdure.core.session.turn_recorder import TurnRecorder
from perdure.ports import Transaction
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import Seq, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import AssistantMessage
from perdure.schema.session.session import SessionInfo
from perdure.store.tables import attempt_table, message_table, retry_table, session_table


async def record(
    services: RunServices,
    session: SessionInfo,
    *,
    agent: str,
    reason: str,
    model: ModelRef | UnsetType = UNSET,
) -> None:
    """Record a failed step; `model` is the chosen one, if a model was chosen."""
    model = session.model if model is UNSET else model
    recorder = TurnRecorder(
        session_id=session.id,
        message_id=services.ids.message(),
        agent=agent,
        model=ModelRef(id="none", provider_id="none") if model is UNSET else model,
    )
    facts = recorder.step_failed(reason, now=services.clock.now_millis())

    async def within(tx: Transaction, seq: Seq) -> None:
        await attempt_table.release(tx, session.id)
        await retry_table.clear(tx, session.id)

    await services.store.append(
        session.id, facts, location=session.location, running=True, within=within
    )


async def record_unanswered(
    services: RunServices, session_id: SessionID, *, reason: str, sent: bool = False
) -> None:
    """Record a failed answer for the newest prompt if it has no answer yet.

    If a request was `sent`, also for the tool results that it was about.
    """

    async def look(tx: Transaction) -> SessionInfo | None:
        newest = await message_table.latest_conversation_message(tx, session_id)
        said = None if newest is None else newest.message()
        if said is None or (isinstance(said, AssistantMessage) and not (sent and _waits(said))):
            return None
        return await session_table.require(tx, session_id)

    session = await services.store.database.read(look)
    if session is not None:
        agent = "" if session.agent is UNSET else session.agent
        await record(services, session, agent=agent, reason=reason)


def _waits(step: AssistantMessage) -> bool:
    """Whether the model was to be sent the results of its calls."""
    return step.error is UNSET and step.time.completed is not UNSET
