"""Slash commands of a Session, run by name."""

from typing import Final

from perdure.protocol.session import command
from perdure.protocol.session.command import InitSession, RunCommand
from perdure.schema.session.command import CommandRequest
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.server.call import Call, Handlers


async def run(call: Call[None, RunCommand]) -> AdmittedPrompt:
    body = call.body
    asked = CommandRequest(
        name=body.command,
        arguments=body.arguments or "",
        id=body.id,
        agent=body.agent,
        model=body.model,
        files=body.files or (),
    )
    return await call.runtime.commands.run(call.session_id, asked)


async def init(call: Call[None, InitSession]) -> AdmittedPrompt:
    asked = CommandRequest(name="init", id=call.body.id, model=call.body.model)
    return await call.runtime.commands.run(call.session_id, asked)


HANDLERS: Final[Handlers] = {
    command.RUN.operation_id: run,
    command.INIT.operation_id: init,
}
