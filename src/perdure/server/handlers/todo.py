"""What a Session's model means to do."""

from typing import Final

from perdure.protocol.session import todo
from perdure.schema.session.todo import Todos
from perdure.server.call import Call, Handlers


async def of_session(call: Call[None, None]) -> Todos:
    return await call.services.todos.load_todos(call.session_id)


HANDLERS: Final[Handlers] = {todo.LIST.operation_id: of_session}
