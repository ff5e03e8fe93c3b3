"""What an Anthropic Messages request carries beside its body."""

from perdure.schema import codec
from tests.contract.llm.calling import calling_over, collect, streamed
from tests.contract.llm.protocols.anthropic.wire import WIRE
from tests.contract.llm.wire import SECRET


async def test_the_request_carries_what_it_must() -> None:
    async with calling_over(WIRE, streamed(WIRE, WIRE.body_of(WIRE.everything))) as (call, server):
        await collect(call)
    (seen,) = server.requests
    assert seen.target == "/v1/messages"
    assert seen.headers["x-api-key"] == SECRET
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in seen.headers
    assert codec.decode_any(seen.body)["max_tokens"] == 77
