"""The integrations of a Location, attempts to log in, and stored credentials."""

from typing import Final

from perdure.protocol.models import credential, integration
from perdure.protocol.models.credential import UpdateCredential
from perdure.protocol.models.integration import CompleteAttempt, ConnectKey, ConnectOAuth
from perdure.schema.models.integration import Attempt, AttemptStatus, IntegrationInfo
from perdure.server.call import Call, Handlers


async def list_integrations(call: Call[None, None]) -> tuple[IntegrationInfo, ...]:
    return await call.runtime.integrations.list(call.location())


async def get(call: Call[None, None]) -> IntegrationInfo:
    return await call.runtime.integrations.get(call.location(), call.params["integrationID"])


async def connect_key(call: Call[None, ConnectKey]) -> None:
    await call.runtime.integrations.connect_key(
        call.location(), call.params["integrationID"], call.body.key, label=call.body.label
    )


async def connect_oauth(call: Call[None, ConnectOAuth]) -> Attempt:
    body = call.body
    return await call.runtime.integrations.connect_oauth(
        call.location(),
        call.params["integrationID"],
        method_id=body.method_id,
        inputs=body.inputs,
        label=body.label,
    )


async def attempt_status(call: Call[None, None]) -> AttemptStatus:
    return await call.runtime.integrations.status(call.params["attemptID"])


async def cancel_attempt(call: Call[None, None]) -> None:
    await call.runtime.integrations.cancel(call.params["attemptID"])


async def complete_attempt(call: Call[None, CompleteAttempt]) -> None:
    await call.runtime.integrations.complete(call.params["attemptID"], call.body.code)


async def update_credential(call: Call[None, UpdateCredential]) -> None:
    await call.runtime.integrations.relabel(call.params["credentialID"], call.body.label)


async def remove_credential(call: Call[None, None]) -> None:
    await call.runtime.integrations.remove(call.params["credentialID"])


HANDLERS: Final[Handlers] = {
    integration.LIST.operation_id: list_integrations,
    integration.GET.operation_id: get,
    integration.CONNECT_KEY.operation_id: connect_key,
    integration.CONNECT_OAUTH.operation_id: connect_oauth,
    integration.ATTEMPT_STATUS.operation_id: attempt_status,
    integration.ATTEMPT_CANCEL.operation_id: cancel_attempt,
    integration.ATTEMPT_COMPLETE.operation_id: complete_attempt,
    credential.UPDATE.operation_id: update_credential,
    credential.REMOVE.operation_id: remove_credential,
}
