"""The System Context Registry: scoped contributions, observed together, in a stable order."""

import asyncio

import pytest

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.context.system_context import ContextError, ContextSource, Observation
from perdure.location.context.registry import (
    ContextRegistry,
    ContextText,
    GuestProducer,
    Producer,
    Subject,
)
from tests.fixtures import SESSION
from tests.requirements import requirement

SOMEBODY = Subject(session_id=SESSION)


def saying(key: str, value: str) -> Producer:
    source = ContextSource(
        key=key, type=str, baseline=lambda v: v, update=lambda before, now: f"now {now}"
    )

    async def look(subject: Subject) -> Observation:
        del subject
        return (system_context.make(source, value),)

    return look


async def told(registry: ContextRegistry) -> str:
    generation = system_context.initialize(await registry.observe(SOMEBODY))
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
    with pytest.raises(ContextError, match="exists already"):
        registry.contribute("a/stays", saying("a/y", "two"))
    with pytest.raises(ContextError, match="namespace/name"):
        registry.contribute("plain", saying("a/y", "two"))


@requirement("S39")
async def test_producers_are_observed_together() -> None:
    registry = ContextRegistry()
    both = asyncio.Barrier(2)

    def meeting(key: str) -> Producer:
        async def look(subject: Subject) -> Observation:
            await both.wait()
            return await saying(key, key)(subject)

        return look

    registry.contribute("a/one", meeting("a/one"))
    registry.contribute("b/two", meeting("b/two"))
    async with asyncio.timeout(5):
        assert await told(registry) == "a/one\n\nb/two"


# ---- guests -------------------------------------------------------------------------------------


def texts(*given: ContextText) -> GuestProducer:
    async def look(subject: Subject) -> tuple[ContextText, ...]:
        del subject
        return given

    return look


@requirement("S83", "S26")
async def test_a_guest_is_told_of_and_untold_with_its_own_words() -> None:
    registry = ContextRegistry()
    rain = ContextText(key="weather/now", text="It rains.", changed="Now it rains.", removed="Dry.")
    snow = ContextText(key="weather/now", text="It snows.", changed="Now it snows.", removed="Dry.")
    with registry.register_guest("weather/now", texts(rain)):
        first = system_context.initialize(await registry.observe(SOMEBODY))
    assert isinstance(first, system_context.Generation)
    assert first.baseline == "It rains."
    with registry.register_guest("weather/now", texts(snow)):
        second = system_context.reconcile(await registry.observe(SOMEBODY), first.snapshot)
    assert isinstance(second, system_context.Updated)
    assert second.text == "Now it snows."
    gone = system_context.reconcile(await registry.observe(SOMEBODY), second.snapshot)
    assert isinstance(gone, system_context.Updated)
    assert (gone.text, gone.snapshot) == ("Dry.", {})


async def raises(subject: Subject) -> tuple[ContextText, ...]:
    raise ZeroDivisionError(f"while looking for {subject.session_id}")


async def hangs(subject: Subject) -> tuple[ContextText, ...]:
    await asyncio.Event().wait()
    raise AssertionError(subject)


BROKEN: dict[str, GuestProducer] = {
    "raises": raises,
    "a foreign key": texts(ContextText(key="core/date", text="Yesterday.")),
    "a process's key": texts(ContextText(key="guest/plugins", text="x")),
    "the same key twice": texts(*[ContextText(key="guest/plugin", text="x")] * 2),
    "no text": texts(ContextText(key="guest/plugin", text=" ")),
    "no words for a change": texts(ContextText(key="guest/plugin", text="x", changed=" ")),
    "too much": texts(ContextText(key="guest/plugin", text="x" * 100_000)),
}


@requirement("S83", "S44", "S65")
@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_guest_is_named_and_what_it_told_before_stays_told(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry = ContextRegistry()
    registry.contribute("a/sound", saying("a/sound", "sound"))
    with registry.register_guest("guest/plugin", BROKEN[name]):
        assert await told(registry) == "sound"
        assert "guest/plugin" in caplog.text
        subject = Subject(session_id=SESSION, admitted=frozenset({"a/sound", "guest/plugin/x"}))
        observation = await registry.observe(subject)
    seen = {observed.key: observed.available for observed in observation}
    assert seen == {"a/sound": True, "guest/plugin/x": False}


async def test_a_guest_that_hangs_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    registry = ContextRegistry()
    registry.contribute("a/sound", saying("a/sound", "sound"))
    with registry.register_guest("guest/plugin", hangs):
        async with asyncio.timeout(limits.CONTEXT_GUEST_SECONDS_MAX + 5):
            assert await told(registry) == "sound"
    assert "guest/plugin" in caplog.text


def test_guests_that_could_be_taken_for_each_other_are_refused() -> None:
    registry = ContextRegistry()
    with registry.register_guest("guest/plugin", raises):
        for key in ("guest/plugin", "guest/plugin/inner"):
            with pytest.raises(ContextError), registry.register_guest(key, raises):
                pass
