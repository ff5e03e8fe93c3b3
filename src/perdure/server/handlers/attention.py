"""What waits for a person, in all Sessions."""

from typing import Final

from perdure.protocol.session import attention as endpoints
from perdure.schema.session.attention import SessionAttention
from perdure.server.call import Call, Handlers


async def attention(call: Call[None, None]) -> tuple[SessionAttention, ...]:
    # Imported late: it needs the engine, which a server loads with the first request that does.
    from perdure.runtime.human.attention import list_attention

    runtime = call.runtime
    return await list_attention(
        runtime.sessions,
        runtime.permissions,
        runtime.questions,
        recovery=runtime.recovery,
        database=runtime.store.database,
    )


HANDLERS: Final[Handlers] = {endpoints.LIST.operation_id: attention}
