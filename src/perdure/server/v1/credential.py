"""V1 keys and logins of providers: the integrations of V2 by provider and number of the method."""

from typing import Final

from perdure.protocol.v1 import credential
from perdure.protocol.v1.credential import (
    AuthorizeV1Provider,
    CompleteV1Login,
    SetV1Auth,
    V1Authorization,
)
from perdure.schema.errors import InvalidRequestError
from perdure.schema.models.integration import (
    AttemptComplete,
    AttemptFailed,
    AttemptPending,
    CredentialConnection,
    OAuthMethod,
)
from perdure.schema.value import State
from perdure.server.binding import Decoded
from perdure.server.call import Call, Handlers
from perdure.server.v1 import location

_LOGINS_MAX: Final = 64
_LOOK_SECONDS: Final = 0.2


class V1Logins(State):
    """The login that was last begun for each provider; V1 does not name an attempt."""

    attempts: dict[str, str]

    def remember(self, provider_id: str, attempt_id: str) -> None:
        self.attempts.pop(provider_id, None)
        while len(self.attempts) >= _LOGINS_MAX:
            del self.attempts[next(iter(self.attempts))]
        self.attempts[provider_id] = attempt_id

    async def authorize(self, call: Call[None, AuthorizeV1Provider]) -> V1Authorization:
        provider_id = call.params["providerID"]
        method = await _method(call, call.body.method)
        begun = await call.runtime.integrations.connect_oauth(
            location.resolve(call),
            provider_id,
            method_id=method.id,
            inputs=call.body.inputs or {},
            label=None,
        )
        self.remember(provider_id, begun.attempt_id)
        return V1Authorization(begun.url, begun.mode, begun.instructions)

    async def complete(self, call: Call[None, CompleteV1Login]) -> bool:
        """Complete the login with its code, or wait until the browser has completed it."""
        attempt_id = self.attempts.get(call.params["providerID"])
        if attempt_id is None:
            raise InvalidRequestError("No login was begun for this provider")
        if call.body.code is not None:
            await call.runtime.integrations.complete(attempt_id, call.body.code)
        status = await call.runtime.integrations.status(attempt_id)
        while isinstance(status, AttemptPending):
            if call.runtime.clock.now_millis() > status.time.expires:
                break
            await call.runtime.clock.sleep(_LOOK_SECONDS)
            status = await call.runtime.integrations.status(attempt_id)
        if isinstance(status, AttemptComplete):
            return True
        why = status.message if isinstance(status, AttemptFailed) else "it took too long"
        raise InvalidRequestError(f"The login was not completed: {why}")


async def set_key(call: Call[None, SetV1Auth]) -> bool:
    body = call.body
    if body.type != "api" or not body.key:
        raise InvalidRequestError(
            "Only a key can be stored (type `api`); log in with /provider/{providerID}/oauth",
            field="type",
        )
    await call.runtime.integrations.connect_key(
        location.resolve(call), call.params["providerID"], body.key, label=None
    )
    return True


async def remove(call: Call[None, None]) -> bool:
    """Remove every stored credential of the provider."""
    found = await call.runtime.integrations.get(location.resolve(call), call.params["providerID"])
    for connection in found.connections:
        if isinstance(connection, CredentialConnection):
            await call.runtime.integrations.remove(connection.id)
    return True


async def _method(call: Call[Decoded, Decoded], number: int) -> OAuthMethod:
    found = await call.runtime.integrations.get(location.resolve(call), call.params["providerID"])
    methods = location.shown_methods(found)
    method = methods[number] if number < len(methods) else None
    if not isinstance(method, OAuthMethod):
        raise InvalidRequestError(f"Method {number} of {found.id} is not a login", field="method")
    return method


def make_handlers() -> Handlers:
    logins = V1Logins({})
    return {
        credential.SET.operation_id: set_key,
        credential.REMOVE.operation_id: remove,
        credential.AUTHORIZE.operation_id: logins.authorize,
        credential.CALLBACK.operation_id: logins.complete,
    }
