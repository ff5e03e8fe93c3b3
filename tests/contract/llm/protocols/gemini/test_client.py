"""What a Gemini request carries beside its body."""

from tests.contract.llm.calling import calling_over, collect, streamed
from tests.contract.llm.protocols.gemini.wire import WIRE
from tests.contract.llm.wire import SECRET


async def test_the_request_carries_what_it_must() -> None:
    async with calling_over(WIRE, streamed(WIRE, WIRE.body_of(WIRE.everything))) as (call, server):
        await collect(call)
    (seen,) = server.requests
    assert seen.target == "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
    assert seen.headers["x-goog-api-key"] == SECRET
    assert "authorization" not in seen.headers
