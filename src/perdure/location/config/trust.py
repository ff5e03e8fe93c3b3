"""Trust grants for the configuration documents of projects: one file in the data directory.

A grant names a document by its place (location.project.place), its path there, and the digest of
what the user was shown. Work trees of one repository share grants; a moved or copied directory has
none. The digest is of the document that was decoded, so a file swapped between check and use is
another document. Directories of `PERDURE_TRUSTED` are trusted ahead, whatever their files hold.

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
from perdure.location.config.files import DIRECTORY_NAME
from perdure.location.project import place
from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

NAME: Final = "trusted.json"
_LOCK_NAME: Final = "trusted.lock"
VARIABLE: Final = "PERDURE_TRUSTED"
"""Directories that are trusted ahead, separated by colons; `*` stands for all."""
_EVERYWHERE: Final = "*"
_VERSION: Final = 2
_OLD_VERSION: Final = 1
"""Its grants were for fewer settings and for a path alone: they count no longer."""
_REMEDY: Final = "Move it away; `perdure trust` begins a new one."

Signature = tuple[int, int, int]


class TrustFileError(Exception):
    """The grants cannot be read or written; the message names the file and the remedy."""


class Grant(Record):
    """One document that the user trusts."""

    place: str
    """The key of its location.project.place.Place."""
    name: bytes
    """Its path below the root of the place. Bytes, because a file name need not be text."""
    digest: str
    """Of what the user was shown; core.settings.trust.digest."""
    path: bytes
    """The path when it was granted, for display."""

    @property
    def display_path(self) -> str:
        return self.path.decode(errors="replace")


class _Version(Record):
    version: int


class _File(Record):
    version: int
    grants: tuple[Grant, ...] = ()
    declined: tuple[Grant, ...] = ()
    """Documents that the user declined, so that the question is not repeated."""


_EMPTY: Final = _File(version=_VERSION)


class Trust:
    """The grants of one data directory. A check costs a stat while nothing changed."""

    def __init__(self, directory: str, *, ahead: str = "") -> None:
        self._directory = directory
        self.ahead: Final = TrustedAhead(ahead)
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
            kept = self._check(document)
            if len(self._documents) >= limits.LOCATIONS_OPEN_MAX:
                self._documents.clear()
            self._documents[document.path] = kept
        if kept.ahead:
            return kept.granted
        granted = kept.grant is not None and _has(self._grants_or_none(), kept.grant)
        return kept.granted if granted else document

    def grants(self) -> tuple[Grant, ...]:
        """All grants. Raises TrustFileError."""
        return self._load().grants

    def was_declined(self, document: Document) -> bool:
        """Whether the user declined the document as it is now. Raises TrustFileError."""
        declined = _grant(document)
        return declined is not None and _has(self._load().declined, declined)

    def grant(self, documents: Iterable[Document]) -> None:
        """Trust these documents as they were read. An older grant of the same path is dropped."""
        new = _grants(documents)

        def change(before: _File) -> _File:
            kept = _without(before, new)
            return replace(kept, grants=(*kept.grants, *new))

        self._change(change)

    def decline(self, documents: Iterable[Document]) -> None:
        """Remember that the user declined these documents as they were read."""
        new = _grants(documents)

        def change(before: _File) -> _File:
            kept = _without(before, new)
            return replace(kept, declined=(*kept.declined, *new))

        self._change(change)

    def revoke(self, directory: str, documents: Iterable[Document] = ()) -> tuple[Grant, ...]:
        """Remove the grants of these documents and of all below `directory`; returns them."""
        top = os.path.realpath(directory)
        named = {_slot(grant) for grant in _grants(documents)}
        dropped: list[Grant] = []

        def change(before: _File) -> _File:
            dropped.extend(
                grant
                for grant in before.grants
                if _slot(grant) in named or is_within(os.fsdecode(grant.path), top)
            )
            return _without(before, dropped)

        self._change(change)
        return tuple(dropped)

    def _check(self, document: Document) -> "_CheckedDocument":
        has_wishes = bool(trust.list_requests(document))
        grant = _grant(document) if has_wishes else None
        ahead = has_wishes and self.ahead.contains(document.path)
        return _CheckedDocument(document, grant, ahead, replace(document, granted=True))

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
            if codec.decode(_Version, data).version == _OLD_VERSION:
                return _EMPTY
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


class TrustedAhead:
    """The directories of `PERDURE_TRUSTED`: everything at and below them is trusted."""

    def __init__(self, text: str) -> None:
        listed = [part for part in text.split(os.pathsep) if part]
        self.everywhere: Final = _EVERYWHERE in listed
        self.directories: Final = tuple(part for part in listed if os.path.isabs(part))
        self.ignored: Final = tuple(
            part for part in listed if part != _EVERYWHERE and not os.path.isabs(part)
        )
        """Entries without effect: a relative path would depend on where the program started."""

    def contains(self, path: str) -> bool:
        """Whether the document at `path` is at or below one of the directories."""
        if self.everywhere:
            return True
        real = os.path.realpath(_configured_directory(path)) if self.directories else ""
        return any(is_within(real, os.path.realpath(each)) for each in self.directories)


class _CheckedDocument(Value):
    """A document and its granted form; made once, so that it stays the same object."""

    document: Document
    grant: Grant | None
    """The grant that it needs; None if it asks for nothing or its place cannot be looked at."""
    ahead: bool
    granted: Document


def _grant(document: Document) -> Grant | None:
    directory = _configured_directory(document.path)
    try:
        found = place.find_place(directory)
    except OSError as error:
        logger.warning("%s is not trusted: its place cannot be read: %s", document.path, error)
        return None
    real = os.path.realpath(directory) + document.path[len(directory) :]
    return Grant(
        place=found.key,
        name=os.fsencode(os.path.relpath(real, found.root)),
        digest=trust.digest(document),
        path=os.fsencode(real),
    )


def _grants(documents: Iterable[Document]) -> tuple[Grant, ...]:
    return tuple(grant for grant in map(_grant, documents) if grant is not None)


def _configured_directory(path: str) -> str:
    """The directory that a document configures: above `.opencode`, or where the file is.

    Of the path as it is written: what is behind a link belongs to the directory with the link.
    """
    above, found, _ = path.rpartition(f"/{DIRECTORY_NAME}/")
    return (above or "/") if found else os.path.dirname(path)


def _slot(grant: Grant) -> tuple[str, bytes]:
    """What has at most one grant: a document at a place."""
    return grant.place, grant.name


def _has(grants: Iterable[Grant], wanted: Grant) -> bool:
    # The path is for display: work trees of one repository have several.
    return any(_slot(each) == _slot(wanted) and each.digest == wanted.digest for each in grants)


def _without(before: _File, removed: Iterable[Grant]) -> _File:
    """The file without all entries for the documents of `removed`."""
    slots = set(map(_slot, removed))
    return replace(
        before,
        grants=tuple(kept for kept in before.grants if _slot(kept) not in slots),
        declined=tuple(kept for kept in before.declined if _slot(kept) not in slots),
    )


def _require_private(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise TrustFileError(f"{path} is not a regular file. {_REMEDY}")
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise TrustFileError(f"{path} is accessible to other users or not yours. {_REMEDY}")
