"""Secrets of this installation: created once in the data directory, readable by the user alone.

A file is created atomically, and processes that start together get the same value.

Invariant: a file that others can read, or that is incomplete, is refused and never used.
"""

import os
import secrets
import stat
from collections.abc import Callable
from typing import Final

PASSWORD_NAME: Final = "server-password"
CURSOR_KEY_NAME: Final = "cursor-key"
EXPORT_KEY_NAME: Final = "export-key"
_BYTES: Final = 32
_FILE_BYTES_MAX: Final = 4_096


class SecretFileError(Exception):
    """A stored secret cannot be used; the message says which and what to do."""


def load_cursor_key(directory: str) -> bytes:
    """The key that seals list cursors (32 bytes), created on first use."""
    return _load_key(os.path.join(directory, CURSOR_KEY_NAME))


def load_export_key(directory: str) -> bytes:
    """The secret key that signs exported Sessions (32 bytes), created on first use."""
    return _load_key(os.path.join(directory, EXPORT_KEY_NAME))


def load_server_password(directory: str) -> str:
    """The generated password of the server (256 random bits), created on first use."""
    path = os.path.join(directory, PASSWORD_NAME)
    return _load_or_create(path, lambda: secrets.token_urlsafe(_BYTES))


def find_server_password(directory: str) -> str | None:
    """The generated password of the server of this data directory, if there is one."""
    return _read(os.path.join(directory, PASSWORD_NAME))


def find_export_key(directory: str) -> bytes | None:
    """The key that signs exported Sessions, if one was created."""
    path = os.path.join(directory, EXPORT_KEY_NAME)
    text = _read(path)
    return None if text is None else _decode_key(path, text)


def _load_key(path: str) -> bytes:
    return _decode_key(path, _load_or_create(path, lambda: secrets.token_hex(_BYTES)))


def _decode_key(path: str, text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError as error:
        raise _damaged(path) from error
    if len(key) != _BYTES:
        raise _damaged(path)
    return key


def _load_or_create(path: str, make: Callable[[], str]) -> str:
    found = _read(path)
    if found is not None:
        return found
    _publish(path, make())
    found = _read(path)
    if found is None:
        raise SecretFileError(f"{path} disappeared while it was created. Try again.")
    return found


def _publish(path: str, text: str) -> None:
    """Create `path` with this content unless it exists: the first process to link it wins."""
    draft = f"{path}.{os.getpid()}.{secrets.token_hex(8)}"
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, text.encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(draft)
    except OSError as error:
        raise SecretFileError(f"Cannot write {path}: {error.strerror}.") from error


def _read(path: str) -> str | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SecretFileError(f"Cannot read {path}: {error.strerror}.") from error
    try:
        _require_private(path, os.fstat(handle))
        data = os.read(handle, _FILE_BYTES_MAX + 1)
    finally:
        os.close(handle)
    text = data.decode("ascii", errors="replace").strip()
    if not text.isascii() or not text or len(data) > _FILE_BYTES_MAX:
        raise _damaged(path)
    return text


def _require_private(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SecretFileError(
            f"{path} is not a regular file. Remove it; a new one will be created."
        )
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise SecretFileError(
            f"{path} can be read by others or is not yours. Remove it; a new one will be created."
        )


def _damaged(path: str) -> SecretFileError:
    return SecretFileError(f"{path} is damaged. Remove it; a new one will be created.")
