"""A model call whose token is asked for when the request is made, because tokens run out.

Everything else about the call is settled before. Renewing tokens is location.credentials.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable

from perdure.llm.event import LLMEvent
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest


def renewed(access: Callable[[], Awaitable[str]], make: Callable[[str], ModelCall]) -> ModelCall:
    """The call that `make` makes of the token of the moment."""

    async def call(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        stream = make(await access())(request)
        try:
            async for batch in stream:
                yield batch
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    return call
