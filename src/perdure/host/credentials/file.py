"""Stored credentials: one JSON file in the data directory, readable by the user alone.

It is replaced atomically and under a lock, so that concurrent writers lose nothing and a reader
never sees half of it. A file that others can read, or that another user owns, is refused. A damaged
file is refused too; storing the next credential renames it and begins a new one.
core.credentials.keys decides which credential is sent where; the database never holds one.

Invariant: no message of this module contains anything that was read from the file.
"""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec

from perdure.core import limits
from perdure.host.credentials import private_file
from perdure.ports import CredentialStoreError
from perdure.schema import codec
from perdure.schema.models.credential import CredentialFile, StoredCredential, StoredKey

NAME: Final = "credentials.json"
_LOCK_NAME: Final = "credentials.lock"
_VERSION: Final = 1

ByIntegration = Mapping[str, StoredCredential]
Signature = tuple[int, int, int]


class _DamagedError(CredentialStoreError):
    """The file cannot be decoded. Storing the next credential renames it."""


class FileCredentials:
    """Implements ports.CredentialStore."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.path: Final = os.path.join(directory, NAME)
        self._kept: tuple[Signature, ByIntegration] | None = None
        self._nothing: ByIntegration = {}

    def look(self) -> ByIntegration:
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            self._kept = None
            return self._nothing
        except OSError as error:
            raise self._failed("read", error) from error
        # st_ctime also changes with the owner and the permissions.
        signature = status.st_ctime_ns, status.st_size, status.st_ino
        kept = self._kept
        if kept is None or kept[0] != signature:
            kept = self._kept = signature, self._read()
        return kept[1]

    def put(self, credential: StoredCredential, *, instead_of: StoredCredential | None) -> bool:
        def change(before: ByIntegration) -> ByIntegration | None:
            held = before.get(credential.integration_id)
            if instead_of is not None and held != instead_of:
                return None
            rest = {name: kept for name, kept in before.items() if kept is not held}
            return {credential.integration_id: credential, **rest}

        return self._change(change, replaces_damaged=instead_of is None)

    def remove(self, credential_id: str) -> bool:
        def change(before: ByIntegration) -> ByIntegration | None:
            rest = {name: kept for name, kept in before.items() if kept.id != credential_id}
            return rest if len(rest) < len(before) else None

        return self._change(change, replaces_damaged=False)

    @contextmanager
    def renewing(self, integration_id: str) -> Generator[bool]:
        # Hashed, because an id may contain characters that a file name may not.
        name = hashlib.sha256(integration_id.encode()).hexdigest()[:32]
        handle = self._open_lock(f"credentials-{name}.lock")
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(handle)

    def _change(
        self, job: Callable[[ByIntegration], ByIntegration | None], *, replaces_damaged: bool
    ) -> bool:
        """Replace the file with the result of `job`; returns False when that is None."""
        handle = self._open_lock(_LOCK_NAME)
        try:
            # Held only for one read and one write.
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                before = self._read()
            except _DamagedError:
                if not replaces_damaged:
                    raise
                self._rename_damaged()
                before = self._nothing
            after = job(before)
            if after is not None:
                self._write(after, before=before)
            return after is not None
        finally:
            os.close(handle)

    def _open_lock(self, name: str) -> int:
        path = os.path.join(self._directory, name)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except OSError as error:
            raise self._failed("lock", error) from error

    def _read(self) -> ByIntegration:
        try:
            data = private_file.read(self.path, most=limits.CREDENTIAL_FILE_BYTES_MAX + 1)
        except FileNotFoundError:
            return self._nothing
        return self._decode(data)

    def _decode(self, data: bytes) -> ByIntegration:
        try:
            if len(data) > limits.CREDENTIAL_FILE_BYTES_MAX:
                raise self._damaged()
            version = codec.decode(_Versioned, data).version
            if version != _VERSION:
                raise CredentialStoreError(
                    f"{self.path} was written by another version of this program ({version})."
                    " Use that version, or move the file away and log in again."
                )
            stored = codec.decode(CredentialFile, data).credentials
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Not chained: a decoder may quote the content.
            raise self._damaged() from None
        return {credential.integration_id: self._unseal(credential) for credential in stored}

    def _unseal(self, stored: StoredCredential) -> StoredCredential:
        """The credential with its secrets, which a subclass may keep elsewhere."""
        secret = stored.key if isinstance(stored, StoredKey) else stored.access
        if not secret:
            raise CredentialStoreError(
                f"{self.path} refers to credentials in a keyring. Set PERDURE_KEYRING=1 to use"
                " them, or move the file away and log in again."
            )
        return stored

    def _write(self, after: ByIntegration, *, before: ByIntegration) -> None:
        """Replace the file. `before` is its old content, for a subclass that keeps secrets."""
        data = codec.encode(CredentialFile(version=_VERSION, credentials=tuple(after.values())))
        if len(data) > limits.CREDENTIAL_FILE_BYTES_MAX:
            raise CredentialStoreError(f"{self.path} would become too large. Remove credentials.")
        private_file.replace(self.path, data)

    def _rename_damaged(self) -> None:
        try:
            os.rename(self.path, f"{self.path}.damaged-{secrets.token_hex(4)}")
        except OSError as error:
            raise self._failed("rename", error) from error

    def _failed(self, what: str, error: OSError) -> CredentialStoreError:
        return private_file.failed(what, self.path, error)

    def _damaged(self) -> _DamagedError:
        return _DamagedError(
            f"{self.path} is damaged and is not used. Repair it, or log in again: the damaged file"
            " is then renamed and kept."
        )


class _Versioned(codec.Record):
    version: int
