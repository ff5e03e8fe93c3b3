"""Whatever happens to sources, the snapshot is what the model was told, and that is the truth."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from perdure.core.context import system_context
from perdure.core.context.system_context import (
    UNAVAILABLE,
    ContextSource,
    Generation,
    InitializationBlocked,
    Observation,
    ReplacementBlocked,
    ReplacementReady,
    Snapshot,
    Unchanged,
    Updated,
)
from tests.requirements import requirement

KEYS = ("a/plain", "b/removable", "c/plain", "d/removable")


@dataclass
class Source:
    value: int = 0
    available: bool = True


@dataclass
class World:
    """Sources as they are, and an epoch as the runtime would keep it."""

    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    snapshot: Snapshot | None = None
    told: list[str] = field(default_factory=list[str])
    """The baseline, then each message."""

    def observe(self) -> Observation:
        return tuple(
            system_context.make(source(key), state.value if state.available else UNAVAILABLE)
            for key, state in sorted(self.sources.items())
        )

    def believed(self) -> dict[str, int]:
        """What a reader of everything that was told, in order, takes to be true."""
        facts: dict[str, int] = {}
        for text in self.told:
            for line in filter(None, text.split("\n")):
                key, _, value = line.partition(" = ")
                if value == "gone":
                    facts.pop(key, None)
                else:
                    facts[key] = int(value)
        return facts

    # ---- what the runtime does at a boundary ----------------------------------------------------

    def cross(self, *, compacted: bool) -> None:
        if self.snapshot is None:
            first = system_context.initialize(self.observe())
            if isinstance(first, InitializationBlocked):
                unseen = [key for key, state in self.sources.items() if not state.available]
                assert sorted(first.keys) == sorted(unseen)
                return
            self._begin(first)
            return
        snapshot = self.snapshot
        decide = system_context.replace if compacted else system_context.reconcile
        match decide(self.observe(), snapshot):
            case Unchanged() | ReplacementBlocked():
                pass
            case Updated(text=text, snapshot=advanced):
                assert text.strip()
                self.told.append(text)
                self.snapshot = advanced
            case ReplacementReady(generation=generation):
                self._begin(generation)

    def restart(self) -> None:
        if self.snapshot is not None:
            stored = system_context.encode_snapshot(self.snapshot)
            self.snapshot = system_context.decode_snapshot(stored)

    def _begin(self, generation: Generation) -> None:
        self.told = [generation.baseline]
        self.snapshot = generation.snapshot


def source(key: str) -> ContextSource[int]:
    removable = key.endswith("removable")
    return ContextSource(
        key=key,
        type=int,
        baseline=lambda value: f"{key} = {value}",
        update=lambda before, now: f"{key} = {now}",
        removed=(lambda value: f"{key} = gone") if removable else None,
    )


step = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(KEYS), st.integers(0, 3)),
    st.tuples(st.just("outage"), st.sampled_from(KEYS), st.just(0)),
    st.tuples(st.just("back"), st.sampled_from(KEYS), st.just(0)),
    st.tuples(st.just("remove"), st.sampled_from(KEYS), st.just(0)),
    st.tuples(st.sampled_from(["cross", "compact", "restart"]), st.just(""), st.just(0)),
)


def take(world: World, action: str, key: str, value: int) -> None:
    match action:
        case "set":
            world.sources.setdefault(key, Source()).value = value
        case "outage":
            if key in world.sources:
                world.sources[key].available = False
        case "back":
            if key in world.sources:
                world.sources[key].available = True
        case "remove":
            world.sources.pop(key, None)
        case "restart":
            world.restart()
        case _:
            world.cross(compacted=action == "compact")


def check(world: World) -> None:
    if world.snapshot is None:
        assert world.told == []
        return
    noted = {key: entry.value for key, entry in world.snapshot.items()}
    assert noted == world.believed()


@requirement("S29", "S30", "S34", "S36", "S42", "S43", "S44")
@given(st.lists(step, max_size=40))
def test_the_snapshot_is_what_was_told_whatever_happens(
    steps: list[tuple[str, str, int]],
) -> None:
    world = World()
    for action, key, value in steps:
        take(world, action, key, value)
        check(world)


@requirement("S27", "S37", "S42", "S58")
@given(steps=st.lists(step, max_size=40), compacted=st.booleans())
def test_once_everything_can_be_seen_a_boundary_tells_the_truth(
    steps: list[tuple[str, str, int]], *, compacted: bool
) -> None:
    world = World()
    for action, key, value in steps:
        take(world, action, key, value)
    for state in world.sources.values():
        state.available = True
    world.cross(compacted=compacted)
    check(world)
    truth = {key: state.value for key, state in world.sources.items()}
    assert world.believed() == truth
    # And it has nothing more to say.
    told = list(world.told)
    world.cross(compacted=False)
    assert world.told == told


@requirement("S44")
@given(st.lists(step, max_size=40))
def test_an_outage_untells_nothing(steps: list[tuple[str, str, int]]) -> None:
    world = World()
    for action, key, value in steps:
        take(world, action, key, value)
    before = world.believed()
    for state in world.sources.values():
        state.available = False
    world.cross(compacted=False)
    for key in world.sources.keys() & before.keys():
        assert world.believed()[key] == before[key]
