"""Credential operations: rename and remove stored credentials. They can never be read."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.codec import Payload
from perdure.schema.errors import CredentialNotFoundError, ServiceUnavailableError


class UpdateCredential(Payload, frozen=True):
    label: str


_GROUP: Final = "credentials"

UPDATE: Final = Endpoint(
    operation_id="v2.credential.update",
    method="PATCH",
    path="/api/credential/{credentialID}",
    group=_GROUP,
    scope="location",
    body=UpdateCredential,
    success=Success("no_content"),
    errors=(*REFUSALS, CredentialNotFoundError, ServiceUnavailableError),
)
REMOVE: Final = Endpoint(
    operation_id="v2.credential.remove",
    method="DELETE",
    path="/api/credential/{credentialID}",
    group=_GROUP,
    scope="location",
    success=Success("no_content"),
    errors=(*REFUSALS, ServiceUnavailableError),
)

ENDPOINTS: Final = (UPDATE, REMOVE)
