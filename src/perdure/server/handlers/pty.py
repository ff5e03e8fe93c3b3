"""The terminals of a Location. What is said over a connected one is in `terminal_socket`."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from perdure.protocol.files import pty
from perdure.protocol.files.pty import ConnectPty, CreatePty, UpdatePty
from perdure.schema.errors import ForbiddenError
from perdure.schema.files.pty import PtyInfo, PtyStart, PtyTicket
from perdure.schema.ids import PtyID
from perdure.server import auth
from perdure.server.call import Call, Handlers
from perdure.server.services import TerminalReader


async def list_terminals(call: Call[None, None]) -> tuple[PtyInfo, ...]:
    return await call.services.terminals.list(call.location())


async def create(call: Call[None, CreatePty]) -> PtyInfo:
    body, ref, terminals = call.body, call.location(), call.services.terminals
    directory = await terminals.directory(ref, body.cwd)
    overlay = await call.services.plugins.environment.overlay(ref, directory)
    start = PtyStart(
        command=body.command or None,
        args=body.args,
        cwd=directory,
        title=body.title,
        env=tuple({**(body.env or {}), **overlay}.items()),
    )
    return await terminals.create(ref, start)


async def get(call: Call[None, None]) -> PtyInfo:
    return await call.services.terminals.get(call.location(), _id(call.params["ptyID"]))


async def update(call: Call[None, UpdatePty]) -> PtyInfo:
    return await call.services.terminals.update(
        call.location(), _id(call.params["ptyID"]), title=call.body.title, size=call.body.size
    )


async def remove(call: Call[None, None]) -> None:
    await call.services.terminals.remove(call.location(), _id(call.params["ptyID"]))


async def connect_token(call: Call[None, None]) -> PtyTicket:
    # Another site's page, even an allowed one, must show that it is no mere form.
    if not auth.is_own_page(call.request.headers) and (
        call.request.headers.get(b"x-opencode-ticket") != b"1"
    ):
        raise ForbiddenError("Invalid PTY connect token request")
    return await call.services.terminals.ticket(call.location(), _id(call.params["ptyID"]))


async def connect(
    call: Call[ConnectPty, None],
) -> Callable[[], AbstractContextManager[TerminalReader]]:
    ref, pty_id, terminals = call.location(), _id(call.params["ptyID"]), call.services.terminals
    ticket = call.query.ticket
    # A ticket takes the place of the credential, so it counts even where none is asked for.
    if ticket is not None and not await terminals.redeem(ref, pty_id, ticket):
        raise ForbiddenError("Invalid PTY connect ticket")
    return await terminals.reader(ref, pty_id, call.query.cursor)


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
