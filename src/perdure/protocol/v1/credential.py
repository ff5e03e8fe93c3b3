"""Keys and logins of providers in V1."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import JsonObject, Payload, Record


class SetV1Auth(Payload):
    """A credential; only a `key` of the type `api` can be stored."""

    type: Literal["api", "oauth", "wellknown"]
    key: str | None = None
    metadata: JsonObject | None = None

    def __repr__(self) -> str:
        return "SetV1Auth(...)"


class AuthorizeV1Provider(Payload):
    """`method` counts the methods of GET /provider/auth from 0."""

    method: Annotated[int, Meta(ge=0)]
    inputs: dict[str, str] | None = None


class CompleteV1Login(Payload):
    method: Annotated[int, Meta(ge=0)]
    code: str | None = None

    def __repr__(self) -> str:
        return "CompleteV1Login(...)"


class V1Authorization(Record):
    url: str
    method: Literal["auto", "code"]
    instructions: str


_OAUTH: Final = "/provider/{providerID}/oauth"

SET: Final = declare("PUT", "/auth/{providerID}", "auth.set", bool, body=SetV1Auth)
REMOVE: Final = declare("DELETE", "/auth/{providerID}", "auth.remove", bool)
AUTHORIZE: Final = declare(
    "POST",
    f"{_OAUTH}/authorize",
    "provider.oauth.authorize",
    V1Authorization,
    body=AuthorizeV1Provider,
)
CALLBACK: Final = declare(
    "POST", f"{_OAUTH}/callback", "provider.oauth.callback", bool, body=CompleteV1Login
)

ENDPOINTS: Final = (SET, REMOVE, AUTHORIZE, CALLBACK)
