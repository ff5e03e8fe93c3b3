"""The pending prompts of a Session: listed, revised, cancelled, put in another order."""

from typing import Final

from perdure.protocol.session import inbox
from perdure.protocol.session.inbox import ReorderInbox, RevisePrompt
from perdure.schema.ids import MessageID
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.server.call import Call, Handlers


async def list_pending(call: Call[None, None]) -> tuple[AdmittedPrompt, ...]:
    return await call.runtime.inbox.list(call.session_id)


async def revise(call: Call[None, RevisePrompt]) -> AdmittedPrompt:
    message_id = MessageID(call.params["messageID"])
    return await call.runtime.inbox.revise(
        call.session_id, message_id, prompt=call.body.prompt, delivery=call.body.delivery
    )


async def cancel(call: Call[None, None]) -> None:
    await call.runtime.inbox.cancel(call.session_id, MessageID(call.params["messageID"]))


async def reorder(call: Call[None, ReorderInbox]) -> None:
    await call.runtime.inbox.reorder(call.session_id, call.body.message_ids)


HANDLERS: Final[Handlers] = {
    inbox.LIST.operation_id: list_pending,
    inbox.REVISE.operation_id: revise,
    inbox.CANCEL.operation_id: cancel,
    inbox.REORDER.operation_id: reorder,
}
