"""Trust grants for the configuration documents of projects: one file in the data directory.

A grant names a document by its path and its bytes. The path contains the real path of the
directory, so redirecting a link does not carry a grant along; the bytes are those that were
decoded, so a file swapped between check and use is another document. core.settings.trust decides
what needs a grant, cli.commands.trust asks the user.

Invariant: a damaged file grants nothing; one that cannot be looked at grants what it granted last.
The file is replaced atomically, under a lock, and only the user can read it.
"""

import fcntl
import logging
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.files.paths import is_within
from perdure.core.settings import trust
from perdure.core.settings.document import Document
from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

NAME: Final = "trusted.json"
_LOCK_NAME: Final = "trusted.lock"
_VERSION: Final = 1
_REMEDY: Final = "Move it away; `perdure trust` begins a new one."

Signature = tuple[int, int, int]


class TrustFileError(Exception):
    """The grants cannot be read or written; the message names the file and the remedy."""


class Grant(Record):
    """One document that the user trusts."""

    path: bytes
    """Bytes, because a file name need not be text."""
    sha256: str

    @property
    def display_path(self) -> str:
        return self.path.decode(errors="replace")


class _File(Record):
    version: int
    grants: tuple[Grant, ...] = ()
    declined: tuple[Grant, ...] = ()
    """Documents that the user declined, so that the question is not repeated."""


_EMPTY: Final = _File(version=_VERSION)


class Trust:
    """The grants of one data directory. A check costs a stat while nothing changed."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.path: Final = os.path.join(directory, NAME)
        self._cached: tuple[Signature, _File] | None = None
        self._documents: dict[str, _CheckedDocument] = {}
        self._last_warning: str | None = None

    def with_grant(self, document: Document) -> Document:
        """The document, marked as granted if it is: the same object while nothing changes."""
        if document.trust == "user":
            return document
        kept = self._documents.get(document.path)
        if kept is None or kept.document is not document:
            has_wishes = bool(trust.list_requests(document))
            kept = _CheckedDocument(document, has_wishes, replace(document, granted=True))
            if len(self._documents) >= limits.LOCATIONS_OPEN_MAX:
                self._documents.clear()
            self._documents[document.path] = kept
        granted = kept.has_wishes and _grant(document) in self._grants_or_none()
        return kept.granted if granted else document

    def grants(self) -> tuple[Grant, ...]:
        """All grants. Raises TrustFileError."""
        return self._load().grants

    def was_declined(self, document: Document) -> bool:
        """Whether the user declined the document as it is now. Raises TrustFileError."""
        return _grant(document) in self._load().declined

    def grant(self, documents: Iterable[Document]) -> None:
        """Trust these documents as they were read. An older grant of the same path is dropped."""
        new = tuple(map(_grant, documents))

        def change(before: _File) -> _File:
            kept = _without(before, new)
            return replace(kept, grants=(*kept.grants, *new))

        self._change(change)

    def decline(self, documents: Iterable[Document]) -> None:
        """Remember that the user declined these documents as they were read."""
        new = tuple(map(_grant, documents))

        def change(before: _File) -> _File:
            kept = _without(before, new)
            return replace(kept, declined=(*kept.declined, *new))

        self._change(change)

    def revoke(self, directory: str, documents: Iterable[Document] = ()) -> tuple[Grant, ...]:
        """Remove the grants of these documents and of all below `directory`; returns them."""
        top = os.path.realpath(directory)
        named = {_grant(document).path for document in documents}
        dropped: list[Grant] = []

        def change(before: _File) -> _File:
            dropped.extend(
                grant
                for grant in before.grants
                if grant.path in named or is_within(os.fsdecode(grant.path), top)
            )
            return _without(before, dropped)

        self._change(change)
        return tuple(dropped)

    def _grants_or_none(self) -> tuple[Grant, ...]:
        try:
            found = self.grants()
        except TrustFileError as error:
            if str(error) != self._last_warning:
                logger.warning("nothing is trusted: %s", error)
            self._last_warning = str(error)
            return ()
        self._last_warning = None
        return found

    def _load(self) -> _File:
        try:
            status = os.lstat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return _EMPTY
        except OSError as error:
            if self._cached is not None:
                return self._cached[1]
            raise self._failed("read", error) from error
        # st_ctime also changes with the owner and the permissions.
        signature = status.st_ctime_ns, status.st_size, status.st_ino
        if self._cached is None or self._cached[0] != signature:
            self._cached = signature, self._read()
        return self._cached[1]

    def _read(self) -> _File:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            handle = os.open(self.path, flags)
        except FileNotFoundError:
            return _EMPTY
        except OSError as error:
            raise self._failed("read", error) from error
        with open(handle, "rb") as file:
            _require_private(self.path, os.fstat(handle))
            data = file.read(limits.TRUST_FILE_BYTES_MAX + 1)
        try:
            found = codec.decode(_File, data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise TrustFileError(f"{self.path} is damaged. {_REMEDY}") from None
        if found.version != _VERSION or len(data) > limits.TRUST_FILE_BYTES_MAX:
            raise TrustFileError(f"{self.path} has another version or is too large. {_REMEDY}")
        return found

    def _change(self, job: Callable[[_File], _File]) -> None:
        lock = os.path.join(self._directory, _LOCK_NAME)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(lock, flags, 0o600)
        except OSError as error:
            raise self._failed("lock", error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self._write(codec.encode(job(self._read())))
        finally:
            os.close(handle)

    def _write(self, data: bytes) -> None:
        if len(data) > limits.TRUST_FILE_BYTES_MAX:
            raise TrustFileError(
                f"{self.path} would become too large. Revoke some grants: perdure trust --revoke"
            )
        draft = f"{self.path}.{os.getpid()}.{secrets.token_hex(8)}"
        try:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
            os.replace(draft, self.path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(draft)
            raise self._failed("write", error) from error

    def _failed(self, what: str, error: OSError) -> TrustFileError:
        return TrustFileError(
            f"Cannot {what} {self.path}: {error.strerror}. Check its owner and permissions,"
            " and that the disk has free space."
        )


class _CheckedDocument(Value):
    """A document and its granted form; made once, so that it stays the same object."""

    document: Document
    has_wishes: bool
    granted: Document


def _grant(document: Document) -> Grant:
    directory, name = os.path.split(document.path)
    path = os.path.join(os.path.realpath(directory), name)
    return Grant(path=os.fsencode(path), sha256=trust.digest(document))


def _without(before: _File, removed: Iterable[Grant]) -> _File:
    """The file without all entries for the paths of `removed`."""
    paths = {grant.path for grant in removed}
    return replace(
        before,
        grants=tuple(kept for kept in before.grants if kept.path not in paths),
        declined=tuple(kept for kept in before.declined if kept.path not in paths),
    )


def _require_private(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise TrustFileError(f"{path} is not a regular file. {_REMEDY}")
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise TrustFileError(f"{path} is accessible to other users or not yours. {_REMEDY}")
