"""V1 terminals: the operations of V2, with the directory named as in V1."""

import os
from typing import Final

from perdure.protocol.files.pty import ConnectPty, CreatePty, UpdatePty
from perdure.protocol.v1 import pty
from perdure.protocol.v1.pty import V1Shell
from perdure.schema.files.pty import PtyInfo, PtyTicket
from perdure.server.call import Call, Handlers
from perdure.server.handlers import pty as terminals
from perdure.server.results import TerminalConnection
from perdure.server.v1 import location

_SHELLS_FILE: Final = "/etc/shells"
_SHELLS_BYTES_MAX: Final = 64 * 1024
_ACCEPTABLE: Final = frozenset({"bash", "dash", "ksh", "sh", "zsh"})


async def shells(call: Call[None, None]) -> tuple[V1Shell, ...]:
    """The shells of this machine."""
    found = (line.strip() for line in _read_shells().splitlines())
    paths = [path for path in dict.fromkeys(found) if path.startswith("/")]
    return tuple(_shell(path) for path in paths if os.access(path, os.X_OK))


async def list_terminals(call: Call[None, None]) -> tuple[PtyInfo, ...]:
    return await terminals.list_terminals(location.placed(call))


async def create(call: Call[None, CreatePty]) -> PtyInfo:
    return await terminals.create(location.placed(call))


async def get(call: Call[None, None]) -> PtyInfo:
    return await terminals.get(location.placed(call))


async def update(call: Call[None, UpdatePty]) -> PtyInfo:
    return await terminals.update(location.placed(call))


async def remove(call: Call[None, None]) -> bool:
    await terminals.remove(location.placed(call))
    return True


async def connect_token(call: Call[None, None]) -> PtyTicket:
    return await terminals.connect_token(location.placed(call))


async def connect(call: Call[ConnectPty, None]) -> TerminalConnection:
    return await terminals.connect(location.placed(call))


def _read_shells() -> str:
    try:
        with open(_SHELLS_FILE, "rb") as file:
            return file.read(_SHELLS_BYTES_MAX).decode(errors="replace")
    except OSError:
        return "/bin/sh\n"


def _shell(path: str) -> V1Shell:
    name = os.path.basename(path)
    return V1Shell(path, name, name in _ACCEPTABLE)


HANDLERS: Final[Handlers] = {
    pty.SHELLS.operation_id: shells,
    pty.LIST.operation_id: list_terminals,
    pty.CREATE.operation_id: create,
    pty.GET.operation_id: get,
    pty.UPDATE.operation_id: update,
    pty.REMOVE.operation_id: remove,
    pty.CONNECT_TOKEN.operation_id: connect_token,
    pty.CONNECT.operation_id: connect,
}
