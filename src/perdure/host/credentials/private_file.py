"""Files that hold secrets: readable by the user alone, and replaced as a whole."""

import os
import secrets
import stat
from contextlib import suppress

from perdure.ports import CredentialStoreError


def read(path: str, *, most: int) -> bytes:
    """The content, cut after `most` bytes. Raises FileNotFoundError and CredentialStoreError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise failed("read", path, error) from error
    try:
        require_private(path, os.fstat(handle))
        with open(handle, "rb", closefd=False) as file:
            return file.read(most)
    except OSError as error:
        raise failed("read", path, error) from error
    finally:
        os.close(handle)


def replace(path: str, data: bytes) -> None:
    """Replace the content durably. Raises CredentialStoreError."""
    draft = f"{path}.{os.getpid()}.{secrets.token_hex(8)}"
    try:
        _write(draft, data)
        os.replace(draft, path)
        sync_directory(os.path.dirname(path))
    except OSError as error:
        with suppress(OSError):
            os.unlink(draft)
        raise failed("write", path, error) from error


def require_private(path: str, status: os.stat_result) -> None:
    """Raises CredentialStoreError for a file that others own or can read."""
    if not stat.S_ISREG(status.st_mode):
        raise CredentialStoreError(f"{path} is not a regular file. Move it away.")
    if status.st_uid != os.geteuid():
        raise CredentialStoreError(
            f"{path} belongs to another user. Move it away, or make it yours (chown)."
        )
    if status.st_mode & 0o077:
        raise CredentialStoreError(
            f"{path} can be read by other users. Run: chmod 600 {path}"
            " (and replace the keys in it if another user may have read them)."
        )


def failed(what: str, path: str, error: OSError) -> CredentialStoreError:
    return CredentialStoreError(
        f"Cannot {what} {path}: {error.strerror}. Check its owner and permissions,"
        " and that the disk has free space."
    )


def sync_directory(directory: str) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)
