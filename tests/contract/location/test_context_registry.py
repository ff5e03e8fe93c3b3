"""The System Context Registry: scoped contributions, observed together, in a stable order."""

import asyncio

import pytest

from perdure.core import system_context
from perdure.core.system_context import ContextError, ContextSource, Observation
from perdure.location.context_registry import ContextRegistry, Producer
from tests.requirements import requirement


def saying(key: str, value: str) -> Producer:
    source = ContextSource(
        key=key, type=str, baseline=lambda v: v, update=lambda before, now: f"now {now}"
    )

    async def look() -> Observation:
        return (system_context.make(source, value),)

    return look


async def told(registry: ContextRegistry) -> str:
    generation = system_context.initialize(await registry.observe())
    assert isinstance(generation, system_context.Generation)
    return generation.baseline


@requirement("S4", "S39", "S82")
async def test_contributions_are_combined_in_key_order_whoever_came_first() -> None:
    registry = ContextRegistry()
    with (
        registry.register("b/second", saying("b/x", "two")),
        registry.register("a/first", saying("a/x", "one")),
    ):
        assert await told(registry) == "one\n\ntwo"


@requirement("S4", "S26")
async def test_leaving_a_scope_removes_what_it_contributed() -> None:
    registry = ContextRegistry()
    registry.contribute("a/stays", saying("a/x", "one"))
    with registry.register("b/goes", saying("b/x", "two")):
        assert await told(registry) == "one\n\ntwo"
    assert await told(registry) == "one"


@requirement("S38")
async def test_a_key_that_is_taken_or_malformed_is_refused() -> None:
    registry = ContextRegistry()
    registry.contribute("a/stays", saying("a/x", "one"))
    with pytest.raises(ContextError, match="there already"):
        registry.contribute("a/stays", saying("a/y", "two"))
    with pytest.raises(ContextError, match="namespace/name"):
        registry.contribute("plain", saying("a/y", "two"))


@requirement("S39")
async def test_producers_are_observed_together() -> None:
    registry = ContextRegistry()
    both = asyncio.Barrier(2)

    def meeting(key: str) -> Producer:
        async def look() -> Observation:
            await both.wait()
            return await saying(key, key)()

        return look

    registry.contribute("a/one", meeting("a/one"))
    registry.contribute("b/two", meeting("b/two"))
    async with asyncio.timeout(5):
        assert await told(registry) == "a/one\n\nb/two"
