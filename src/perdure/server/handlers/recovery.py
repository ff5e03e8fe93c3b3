"""What a crash left of a Session, and what a person wants done about it."""

from typing import Final

from perdure.protocol.session import recovery
from perdure.protocol.session.recovery import DecideRecovery
from perdure.schema.session.recovery import RecoveryInfo
from perdure.server.call import Call, Handlers


async def of_session(call: Call[None, None]) -> RecoveryInfo:
    return await call.services.recovery.load_recovery(call.session_id)


async def decide(call: Call[None, DecideRecovery]) -> None:
    await call.services.recovery.decide(call.session_id, call.body.decision)


HANDLERS: Final[Handlers] = {
    recovery.GET.operation_id: of_session,
    recovery.DECIDE.operation_id: decide,
}
