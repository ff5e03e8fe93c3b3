"""Port for stored Credentials."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from perdure.schema.models.credential import StoredCredential


class CredentialStoreError(Exception):
    """Credentials cannot be read or stored. The message names the file and the remedy."""


class CredentialStore(Protocol):
    """The credentials of this installation, one per integration. Methods may block briefly."""

    def look(self) -> Mapping[str, StoredCredential]:
        """The stored credentials by integration; the same object while nothing changes.

        Includes what other processes stored. Raises CredentialStoreError.
        """
        ...

    def put(self, credential: StoredCredential, *, instead_of: StoredCredential | None) -> bool:
        """Store it durably as its integration's only credential.

        With `instead_of`, only if exactly that is stored; returns whether it was. Raises as `look`.
        """
        ...

    def remove(self, credential_id: str) -> bool:
        """Remove it; returns whether it existed. Raises as `look`."""
        ...

    def renewing(self, integration_id: str) -> AbstractContextManager[bool]:
        """Try to lock the renewal of a login; gives whether this process has the lock."""
        ...
