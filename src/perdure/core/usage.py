"""Token usage: what a provider counted, as it is stored and added up."""

from perdure.llm.event import Usage
from perdure.schema.model import TokenCache, TokenUsage


def tokens_of(usage: Usage) -> TokenUsage:
    return TokenUsage(
        input=max(0, usage.input),
        output=max(0, usage.output),
        reasoning=max(0, usage.reasoning),
        cache=TokenCache(read=max(0, usage.cache_read), write=max(0, usage.cache_write)),
    )
