"""The interface between a Session and a model: a provider, the demo, or a test's script."""

from collections.abc import AsyncIterator
from typing import Protocol

from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest


class ModelCall(Protocol):
    def __call__(self, request: LLMRequest) -> AsyncIterator[tuple[LLMEvent, ...]]:
        """Stream the answer in batches, one for each piece that arrived.

        The last event is Finish or ProviderError. Raises LLMError. Closing the iterator early
        abandons the request.
        """
        ...
