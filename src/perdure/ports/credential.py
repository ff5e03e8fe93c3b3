"""Where Credentials are kept."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from perdure.schema.models.credential import StoredCredential


class CredentialStoreError(Exception):
    """Credentials cannot be read or kept; the message names the file and the remedy."""


class CredentialStore(Protocol):
    """The credentials of this installation, one for each integration. Methods may block shortly."""

    def look(self) -> Mapping[str, StoredCredential]:
        """What is stored now, by integration; the very same object while nothing changes.

        Also sees what another process stored. Raises CredentialStoreError.
        """
        ...

    def put(self, credential: StoredCredential, *, instead_of: StoredCredential | None) -> bool:
        """Store it as its integration's only one, durably.

        With `instead_of`, only if exactly that is stored; whether it was. Raises as `look`.
        """
        ...

    def remove(self, credential_id: str) -> bool:
        """Forget it; whether there was one. Raises as `look`."""
        ...

    def renewing(self, integration_id: str) -> AbstractContextManager[bool]:
        """Try to be the one process that renews a login; whether this is the one."""
        ...
