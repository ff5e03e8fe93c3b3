"""The MCP servers that clients gave to Sessions: a private file for each such Session.

They hold secrets as credentials do, so the database never holds one. With a keyring the file only
says that the keyring has them.

Invariant: no message of this module contains anything that was read from a file.
"""

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from perdure.core import limits
from perdure.host import data_directory
from perdure.host.credentials import keyring, private_file
from perdure.ports import CredentialStoreError
from perdure.ports.session_mcp import Version
from perdure.schema import codec
from perdure.schema.codec import ConfidentialRecord
from perdure.schema.ids import SessionID
from perdure.schema.settings.session_mcp import GivenMcpServers

_BYTES_MAX: Final = 2 * limits.MCP_SESSION_BYTES_MAX


class _Stored(ConfidentialRecord):
    servers: GivenMcpServers
    sealed: bool = False
    """Whether the keyring has them."""


class FileSessionServers:
    """Implements ports.session_mcp.SessionServerStore."""

    def __init__(self, directory: str, variables: Mapping[str, str]) -> None:
        self._data_directory = directory
        self._directory = os.path.join(directory, data_directory.SESSION_SERVERS_NAME)
        self._seals = keyring.is_enabled(variables)

    def version(self, session_id: SessionID) -> Version | None:
        try:
            status = os.lstat(self._path(session_id))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise private_file.failed("read", self._path(session_id), error) from error
        return status.st_ctime_ns, status.st_size, status.st_ino

    def load(self, session_id: SessionID) -> GivenMcpServers:
        path = self._path(session_id)
        try:
            data = private_file.read(path, most=_BYTES_MAX + 1)
        except FileNotFoundError:
            return {}
        try:
            stored = codec.decode(_Stored, data)
            if not stored.sealed:
                return stored.servers
            text = keyring.load_text(_name(session_id))
            return codec.decode(_Stored, text or "").servers
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # Not chained: a decoder may quote the content.
            raise CredentialStoreError(
                f"{path} is damaged and is not used. Give the Session its MCP servers again."
            ) from None

    def save(self, session_id: SessionID, servers: GivenMcpServers) -> None:
        path = self._path(session_id)
        if not servers:
            self._remove(session_id)
            return
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
        except OSError as error:
            raise private_file.failed("create", self._directory, error) from error
        data = codec.encode(_Stored(servers))
        if self._seals:
            keyring.store_text(_name(session_id), data.decode())
            data = codec.encode(_Stored({}, sealed=True))
        private_file.replace(path, data)

    def _remove(self, session_id: SessionID) -> None:
        path = self._path(session_id)
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise private_file.failed("remove", path, error) from error
        if self._seals:
            keyring.remove_text(_name(session_id))

    def _path(self, session_id: SessionID) -> str:
        return data_directory.session_servers_path(self._data_directory, session_id)


def _name(session_id: SessionID) -> str:
    return f"{data_directory.SESSION_SERVERS_NAME}/{session_id}"
