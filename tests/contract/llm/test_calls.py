"""A call over real sockets, whichever wire protocol it speaks: what comes of each answer."""

import pytest

from perdure.llm.error import LLMError, Reason
from perdure.llm.event import ProviderError, TextDelta
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.host.loopback import response
from tests.contract.llm.calling import calling_over, collect, streamed
from tests.contract.llm.wire import SECRET, Wire
from tests.contract.llm.wires import each_row, each_wire


@each_wire()
async def test_an_answer_arrives_as_it_was_sent(wire: Wire) -> None:
    whole = streamed(wire, wire.body_of(wire.everything))
    async with calling_over(wire, whole) as (call, _):
        assert await collect(call) == wire.everything_is


@each_wire()
async def test_an_error_inside_the_stream_ends_it_and_is_told_without_secrets(wire: Wire) -> None:
    failing = [*wire.begin, *wire.half, wire.error(f"bad key {SECRET}"), *wire.text(1, "late")]
    async with calling_over(wire, streamed(wire, wire.body_of(failing))) as (call, _):
        events = await collect(call)
    assert [event for event in events if isinstance(event, TextDelta)] == [
        TextDelta(wire.text_id, "half")
    ]
    (expected,) = wire.heard([wire.error("bad key [redacted]")])
    assert isinstance(expected, ProviderError)
    assert events[-1] == expected


@each_row("status, body, reason", lambda wire: wire.refusals)
async def test_refusals_have_one_vocabulary(
    wire: Wire, status: int, body: JsonObject, reason: Reason
) -> None:
    refused = response(codec.encode(body), status=f"{status} X")
    async with calling_over(wire, refused) as (call, _):
        with pytest.raises(LLMError) as failed:
            await collect(call)
    assert (failed.value.reason, failed.value.status) == (reason, status)


@each_wire()
async def test_a_connection_that_breaks_off_is_an_incomplete_answer(wire: Wire) -> None:
    whole = streamed(wire, wire.body_of(wire.everything))
    async with calling_over(wire, whole[: len(whole) // 2]) as (call, _):
        with pytest.raises(LLMError, match="before it was complete"):
            await collect(call)
