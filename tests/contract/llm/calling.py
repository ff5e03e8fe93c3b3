"""A model call over real sockets, to a server that answers with the bytes a test gives it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

from perdure.host.http.client import HttptoolsTransport
from perdure.llm.event import LLMEvent
from perdure.llm.http import model_call
from perdure.llm.http.model_call import CallLimits
from perdure.llm.message import LLMMessage, TextPart, split_segments
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.llm.route import Route
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.host.loopback import Answer, Loopback, Received, serving
from tests.contract.llm.wire import Wire

REQUEST: Final = LLMRequest(
    model=ModelRef(id="m", provider_id="p"),
    system=("s",),
    runs=split_segments((LLMMessage("user", (TextPart("hi"),)),)),
    headers={"X-Session-Id": "ses_1"},
)


@asynccontextmanager
async def calling(
    route: Callable[[str], Route], answer: Answer, *, limits: CallLimits = model_call.DEFAULT_LIMITS
) -> AsyncGenerator[tuple[ModelCall, Loopback]]:
    """A call over the route to that address, where `answer` is given."""
    transport = HttptoolsTransport()
    async with asyncio.timeout(30), serving(answer) as server:
        try:
            yield (
                model_call.model_call(route(server.url), transport, ManualClock(), limits=limits),
                server,
            )
        finally:
            await transport.aclose()


@asynccontextmanager
async def calling_over(wire: Wire, *answers: bytes) -> AsyncGenerator[tuple[ModelCall, Loopback]]:
    """A call to a model of that protocol, which gives these answers."""

    def route(url: str) -> Route:
        return Route(
            protocol=wire.protocol,
            base_url=url + wire.base_path,
            model=wire.facts,
            credential=wire.credential,
        )

    async with calling(route, answering(*answers)) as opened:
        yield opened


async def collect(call: ModelCall, request: LLMRequest = REQUEST) -> list[LLMEvent]:
    return [event async for batch in call(request) for event in batch]


def answering(*raw: bytes) -> Answer:
    """One answer for each request, the last one for all that follow."""
    left = list(raw)

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])
        writer.close()

    return answer


def streamed(wire: Wire, body: bytes) -> bytes:
    """An answer that is a stream, and ends with its connection."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {wire.protocol.accept}\r\nconnection: close\r\n\r\n"
    return head.encode() + body
