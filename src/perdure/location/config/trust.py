"""What people granted to the configuration of projects: one file in the data directory.

A grant is a document at a place with these bytes. The place is the real path of its directory, so
a link that is turned elsewhere carries no grant along; the bytes are those that were decoded, so a
file that is swapped between a look and its use counts as another one. Deciding what needs a grant
is not done here (core.settings.trust), nor is asking for one (cli.commands.trust).

Invariant: whatever is wrong with the file, nothing is granted by it; it is replaced in one step,
under a lock, and readable by the user alone.
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
    """One document that a person trusts."""

    path: bytes
    """As the file system has it: a name need not be text."""
    sha256: str

    @property
    def shown(self) -> str:
        return self.path.decode(errors="replace")


class _File(Record):
    version: int
    grants: tuple[Grant, ...] = ()
    declined: tuple[Grant, ...] = ()
    """What a person said no to, so that nobody asks again."""


_EMPTY: Final = _File(version=_VERSION)


class Trust:
    """The grants of one data directory. Looking costs a stat while nothing changed."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.path: Final = os.path.join(directory, NAME)
        self._read_as: tuple[Signature, _File] | None = None
        self._marked: dict[str, _Marked] = {}
        self._complaint: str | None = None

    def marked(self, document: Document) -> Document:
        """The document with what was granted to it: the same one for as long as that holds."""
        if document.trust == "user":
            return document
        kept = self._marked.get(document.path)
        if kept is None or kept.document is not document:
            kept = _Marked(
                document, bool(trust.list_requests(document)), replace(document, granted=True)
            )
            if len(self._marked) >= limits.LOCATIONS_OPEN_MAX:
                self._marked.clear()
            self._marked[document.path] = kept
        granted = kept.asks and _grant(document) in self._known()
        return kept.granted if granted else document

    def grants(self) -> tuple[Grant, ...]:
        """Everything that is granted. Raises TrustFileError."""
        return self._look().grants

    def was_declined(self, document: Document) -> bool:
        """Whether a person said no to the document as it is. Raises TrustFileError."""
        return _grant(document) in self._look().declined

    def grant(self, documents: Iterable[Document]) -> None:
        """Trust these documents as they were read. An older grant of the same place is dropped."""
        new = tuple(map(_grant, documents))

        def change(before: _File) -> _File:
            kept = _apart_from(before, new)
            return replace(kept, grants=(*kept.grants, *new))

        self._change(change)

    def decline(self, documents: Iterable[Document]) -> None:
        """Remember that a person said no to these documents as they were read."""
        new = tuple(map(_grant, documents))

        def change(before: _File) -> _File:
            kept = _apart_from(before, new)
            return replace(kept, declined=(*kept.declined, *new))

        self._change(change)

    def revoke(self, directory: str, documents: Iterable[Document] = ()) -> tuple[Grant, ...]:
        """Trust these documents no more, nor anything below `directory`; what was dropped."""
        top = os.path.realpath(directory)
        named = {_grant(document).path for document in documents}
        dropped: list[Grant] = []

        def change(before: _File) -> _File:
            dropped.extend(
                grant
                for grant in before.grants
                if grant.path in named or is_within(os.fsdecode(grant.path), top)
            )
            return _apart_from(before, dropped)

        self._change(change)
        return tuple(dropped)

    def _known(self) -> tuple[Grant, ...]:
        try:
            found = self.grants()
        except TrustFileError as error:
            if str(error) != self._complaint:
                logger.warning("nothing is trusted: %s", error)
            self._complaint = str(error)
            return ()
        self._complaint = None
        return found

    def _look(self) -> _File:
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            return _EMPTY
        except OSError as error:
            raise self._failed("read", error) from error
        # The time of its last change of any kind: also of who may write it.
        now = status.st_ctime_ns, status.st_size, status.st_ino
        if self._read_as is None or self._read_as[0] != now:
            self._read_as = now, self._read()
        return self._read_as[1]

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
            raise TrustFileError(f"{self.path} is not of this version. {_REMEDY}")
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
            raise TrustFileError(f"{self.path} would become too large. Revoke what you can.")
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
            " and that the disk has room."
        )


class _Marked(Value):
    """A document and what it would be if it were granted; made once, so that it stays the same."""

    document: Document
    asks: bool
    granted: Document


def _grant(document: Document) -> Grant:
    directory, name = os.path.split(document.path)
    place = os.path.join(os.path.realpath(directory), name)
    return Grant(path=os.fsencode(place), sha256=trust.digest(document))


def _apart_from(before: _File, these: Iterable[Grant]) -> _File:
    """Without anything that is known of the places of `these`."""
    paths = {grant.path for grant in these}
    return replace(
        before,
        grants=tuple(kept for kept in before.grants if kept.path not in paths),
        declined=tuple(kept for kept in before.declined if kept.path not in paths),
    )


def _require_private(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise TrustFileError(f"{path} is not a regular file. {_REMEDY}")
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise TrustFileError(f"{path} is open to others or is not yours. {_REMEDY}")
