"""The terminals of a Location. `terminal_socket` carries input and output of a connected one."""

from typing import Final

from perdure.protocol.files import pty
from perdure.protocol.files.pty import ConnectPty, CreatePty, UpdatePty
from perdure.schema.errors import ForbiddenError
from perdure.schema.files.pty import PtyInfo, PtyStart, PtyTicket
from perdure.schema.ids import PtyID
from perdure.server import auth
from perdure.server.call import Call, Handlers
from perdure.server.results import TerminalConnection


async def list_terminals(call: Call[None, None]) -> tuple[PtyInfo, ...]:
    return await call.runtime.terminals.list(call.location())


async def create(call: Call[None, CreatePty]) -> PtyInfo:
    body, ref, terminals = call.body, call.location(), call.runtime.terminals
    directory = await terminals.directory(ref, body.cwd)
    # What plugins add wins over what the client sends.
    overlay = await call.runtime.plugins.environment.overlay(ref, directory)
    start = PtyStart(
        command=body.command or None,
        args=body.args,
        cwd=directory,
        title=body.title,
        env=tuple({**(body.env or {}), **overlay}.items()),
    )
    return await terminals.create(ref, start)


async def get(call: Call[None, None]) -> PtyInfo:
    return await call.runtime.terminals.get(call.location(), _id(call.params["ptyID"]))


async def update(call: Call[None, UpdatePty]) -> PtyInfo:
    return await call.runtime.terminals.update(
        call.location(), _id(call.params["ptyID"]), title=call.body.title, size=call.body.size
    )


async def remove(call: Call[None, None]) -> None:
    await call.runtime.terminals.remove(call.location(), _id(call.params["ptyID"]))


async def connect_token(call: Call[None, None]) -> PtyTicket:
    # A page of another site, even an allowed one, must send a header, which a form cannot.
    if not auth.is_own_page(call.request.headers) and (
        call.request.headers.get(b"x-opencode-ticket") != b"1"
    ):
        raise ForbiddenError("Invalid PTY connect token request")
    return await call.runtime.terminals.ticket(call.location(), _id(call.params["ptyID"]))


async def connect(call: Call[ConnectPty, None]) -> TerminalConnection:
    ref, pty_id, terminals = call.location(), _id(call.params["ptyID"]), call.runtime.terminals
    ticket = call.query.ticket
    # A ticket replaces the credentials, so it is checked even where none are asked for.
    if ticket is not None and not await terminals.redeem(ref, pty_id, ticket):
        raise ForbiddenError("Invalid PTY connect ticket")
    return TerminalConnection(await terminals.reader(ref, pty_id, call.query.cursor))


def _id(text: str) -> PtyID:
    return PtyID(text)


HANDLERS: Final[Handlers] = {
    pty.LIST.operation_id: list_terminals,
    pty.CREATE.operation_id: create,
    pty.GET.operation_id: get,
    pty.UPDATE.operation_id: update,
    pty.REMOVE.operation_id: remove,
    pty.CONNECT_TOKEN.operation_id: connect_token,
    pty.CONNECT.operation_id: connect,
}
