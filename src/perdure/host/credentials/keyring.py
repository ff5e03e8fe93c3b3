"""Stored credentials whose secrets are in the keyring of the user's desktop.

The file lists the credentials; the `keyring` package keeps their secrets. It is installed with the
extra of that name and imported on first use. Everything else is as in host.credentials.file.

Invariant: a secret is in the keyring before the file lists it, and removed only after the file no
longer does.
"""

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Final, Protocol, cast

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from perdure.host.credentials.file import ByIntegration, FileCredentials
from perdure.ports import CredentialStoreError
from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.models.credential import StoredCredential, StoredKey

_SERVICE: Final = "perdure"


class Keyring(Protocol):
    """The part of the package in use."""

    def get_password(self, service_name: str, username: str, /) -> str | None: ...
    def set_password(self, service_name: str, username: str, password: str, /) -> None: ...
    def delete_password(self, service_name: str, username: str, /) -> None: ...


def open_store(directory: str, variables: Mapping[str, str]) -> FileCredentials:
    """The store of a data directory; with PERDURE_KEYRING set, secrets are in a keyring."""
    return KeyringCredentials(directory) if is_enabled(variables) else FileCredentials(directory)


def is_enabled(variables: Mapping[str, str]) -> bool:
    return variables.get("PERDURE_KEYRING", "").lower() in {"1", "true"}


def load_text(name: str) -> str | None:
    """A secret text that `store_text` stored. Raises CredentialStoreError."""
    keyring, failure = _import_keyring()
    try:
        return keyring.get_password(_SERVICE, name)
    except failure:
        raise _unusable() from None


def store_text(name: str, text: str) -> None:
    """Store a secret text under this name. Raises CredentialStoreError."""
    keyring, failure = _import_keyring()
    try:
        keyring.set_password(_SERVICE, name, text)
    except failure:
        raise _unusable() from None


def remove_text(name: str) -> None:
    keyring, failure = _import_keyring()
    with suppress(failure):
        keyring.delete_password(_SERVICE, name)


class KeyringCredentials(FileCredentials):
    """Without the package every read and write fails with an error that says so."""

    def _unseal(self, stored: StoredCredential) -> StoredCredential:
        if not _is_sealed(stored):
            return stored
        keyring, failure = _import_keyring()
        try:
            text = keyring.get_password(_SERVICE, stored.id)
            secrets = None if text is None else codec.decode(_Secrets, text)
        except (failure, msgspec.DecodeError):
            # Not chained: either may quote the secret.
            raise self._unavailable() from None
        if secrets is None:
            raise self._unavailable()
        if isinstance(stored, StoredKey):
            return replace(stored, key=secrets.value)
        return replace(
            stored,
            access=secrets.value,
            refresh=secrets.refresh,
            client_secret=secrets.client_secret,
        )

    def _write(self, after: ByIntegration, *, before: ByIntegration) -> None:
        keyring, failure = _import_keyring()
        try:
            for stored in after.values():
                # Secrets from before PERDURE_KEYRING was set move to the keyring too.
                text = codec.encode(_secrets_of(stored)).decode()
                keyring.set_password(_SERVICE, stored.id, text)
            sealed = {name: _seal(stored) for name, stored in after.items()}
            super()._write(sealed, before=before)
            kept = {stored.id for stored in after.values()}
            for removed in (stored.id for stored in before.values() if stored.id not in kept):
                with suppress(failure):
                    keyring.delete_password(_SERVICE, removed)
        except failure:
            raise self._unavailable() from None

    def _unavailable(self) -> CredentialStoreError:
        return CredentialStoreError(
            f"The keyring has no usable secrets for the credentials in {self.path}."
            " Unlock it, or log in again."
        )


def _unusable() -> CredentialStoreError:
    return CredentialStoreError("The keyring cannot be used. Unlock it, and try again.")


def _import_keyring() -> tuple[Keyring, type[Exception]]:
    """The package, and the base class of its errors."""
    try:
        keyring = cast("Keyring", import_module("keyring"))
        errors = import_module("keyring.errors")
    except ImportError as error:
        raise CredentialStoreError(
            "Credentials are to be kept in a keyring, but the package `keyring` is not installed."
            " Install perdure[keyring], or unset PERDURE_KEYRING."
        ) from error
    return keyring, cast("type[Exception]", errors.KeyringError)


class _Secrets(Record):
    value: str
    refresh: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET

    def __repr__(self) -> str:
        return "_Secrets(...)"


def _secrets_of(stored: StoredCredential) -> _Secrets:
    if isinstance(stored, StoredKey):
        return _Secrets(stored.key)
    return _Secrets(stored.access, stored.refresh, stored.client_secret)


def _seal(stored: StoredCredential) -> StoredCredential:
    if isinstance(stored, StoredKey):
        return replace(stored, key="")
    return replace(stored, access="", refresh=UNSET, client_secret=UNSET)


def _is_sealed(stored: StoredCredential) -> bool:
    return not (stored.key if isinstance(stored, StoredKey) else stored.access)
