"""The integrations of a Location, and attempts to log in."""

from typing import Final

from perdure.protocol.models import integration
from perdure.protocol.models.integration import CompleteAttempt, ConnectKey, ConnectOAuth
from perdure.schema.models.integration import Attempt, AttemptStatus, IntegrationInfo
from perdure.server.call import Call, Handlers


async def list_integrations(call: Call[None, None]) -> tuple[IntegrationInfo, ...]:
    return await call.services.integrations.list(call.location())


async def get(call: Call[None, None]) -> IntegrationInfo:
    return await call.services.integrations.get(call.location(), call.params["integrationID"])


async def connect_key(call: Call[None, ConnectKey]) -> None:
    await call.services.integrations.connect_key(
        call.location(), call.params["integrationID"], call.body.key, label=call.body.label
    )


async def connect_oauth(call: Call[None, ConnectOAuth]) -> Attempt:
    body = call.body
    return await call.services.integrations.connect_oauth(
        call.location(),
        call.params["integrationID"],
        method_id=body.method_id,
        inputs=body.inputs,
        label=body.label,
    )


async def attempt_status(call: Call[None, None]) -> AttemptStatus:
    return await call.services.integrations.status(call.params["attemptID"])


async def cancel_attempt(call: Call[None, None]) -> None:
    await call.services.integrations.cancel(call.params["attemptID"])


async def complete_attempt(call: Call[None, CompleteAttempt]) -> None:
    await call.services.integrations.complete(call.params["attemptID"], call.body.code)


HANDLERS: Final[Handlers] = {
    integration.LIST.operation_id: list_integrations,
    integration.GET.operation_id: get,
    integration.CONNECT_KEY.operation_id: connect_key,
    integration.CONNECT_OAUTH.operation_id: connect_oauth,
    integration.ATTEMPT_STATUS.operation_id: attempt_status,
    integration.ATTEMPT_CANCEL.operation_id: cancel_attempt,
    integration.ATTEMPT_COMPLETE.operation_id: complete_attempt,
}
