"""Stored credentials: a key or the tokens of a login, with the origins they may be sent to.

They are written to one file only. No answer, event or log contains them: clients see
schema.models.integration.

Invariant: the repr shows neither key nor token.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record


class _Stored(Record, kw_only=True):
    id: str
    integration_id: str
    label: str
    origins: tuple[str, ...]
    """Where it may be sent, as `scheme://host[:port]`; fixed when it was saved."""
    time_created: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id}, ...)"


class StoredKey(_Stored, kw_only=True, tag_field="type", tag="key"):
    key: str


SecretPlace = Literal["header", "body"]
"""Where a token server wants the secret of a client: in `Authorization`, or among the fields."""


class StoredLogin(_Stored, kw_only=True, tag_field="type", tag="oauth"):
    token_url: str
    """Where tokens are renewed. They are sent only there and to `origins`."""
    client_id: str
    client_secret: str | UnsetType = UNSET
    """Of a client that a person registered with the server; most clients have none."""
    secret_place: SecretPlace | UnsetType = UNSET
    access: str
    refresh: str | UnsetType = UNSET
    expires: int | UnsetType = UNSET
    """When `access` expires; unset if unknown."""
    due: int | UnsetType = UNSET
    """When to renew it, before it expires."""
    lost: str | UnsetType = UNSET
    """Why it can no longer be used, once the provider has refused to renew it."""


StoredCredential = StoredKey | StoredLogin


class CredentialFile(Record, kw_only=True):
    """The content of the credential file."""

    version: int
    credentials: tuple[StoredCredential, ...]
