"""System Context: facts shown to the model once, and again only when they change.

A Context Source is a key, a codec, and renderers; an Observation holds the current values of all
sources, read elsewhere. `initialize`, `reconcile` and `replace` turn observations into the exact
text to send and the Context Snapshot to compare with next time. Renderers run only for text that
is needed. Keys are unique; text is never empty; texts are joined by a blank line.
"""

import enum
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from perdure.lazy_pattern import lazy_pattern
from perdure.schema import codec
from perdure.schema.codec import JsonValue, Record
from perdure.schema.ids import Seq
from perdure.schema.value import Value

V = TypeVar("V")

KEY: Final = lazy_pattern(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._/-]*")
_JOINER: Final = "\n\n"
_SNAPSHOTS_KEPT: Final = 32


class Unavailable(enum.Enum):
    """The source could not be observed. Not the same as observed to be absent."""

    UNAVAILABLE = "unavailable"


UNAVAILABLE: Final = Unavailable.UNAVAILABLE


class ContextError(ValueError):
    """A malformed or repeated source key, or an empty rendering."""


class SnapshotDecodeError(Exception):
    """A stored Context Snapshot cannot be read, so no request may be sent."""


class ContextSource(Value, Generic[V], kw_only=True):
    """A fact with a typed value. A source with `removed` can disappear."""

    key: str
    type: type[V]
    """The type of the value; its JSON form is stored and compared."""
    baseline: Callable[[V], str]
    update: Callable[[V, V], str]
    """Previous and current value -> text that states the current one."""
    removed: Callable[[V], str] | None = None

    def __post_init__(self) -> None:
        if KEY.fullmatch(self.key) is None:
            raise ContextError(f"context source key {self.key!r} is not namespace/name")


Renderer = Callable[[], str]


class Observed(Value):
    """One source with its observed value; the closures hide the value's type."""

    key: str
    available: bool
    encoded: JsonValue
    baseline: Renderer
    update: Callable[[JsonValue], Renderer | None]
    """Stored JSON -> renderer of the update; None if nothing changed.

    Raises msgspec.ValidationError if the stored value has another shape.
    """
    removed: Renderer | None


Observation = tuple[Observed, ...]


def make(source: ContextSource[V], value: V | Unavailable) -> Observed:
    """Pair a source with its value, hiding the type, so that different sources compose."""
    if isinstance(value, Unavailable):
        return unavailable(source.key)
    current = value
    encoded = codec.to_json_value(current)

    def update(stored: JsonValue) -> Renderer | None:
        if stored == encoded:
            return None
        previous = codec.convert(source.type, stored)
        if codec.to_json_value(previous) == encoded:
            return None
        return lambda: source.update(previous, current)

    removed = source.removed
    return Observed(
        source.key,
        True,
        encoded,
        lambda: source.baseline(current),
        update,
        None if removed is None else lambda: removed(current),
    )


def unavailable(key: str) -> Observed:
    """A source that could not be observed."""
    return Observed(key, False, None, _never, _never_update, None)


def count_missing(observation: Observation) -> int:
    """How many sources could not be observed."""
    return sum(not observed.available for observed in observation)


def combine(*observations: Observation) -> Observation:
    """All sources in the given order; a repeated key raises ContextError."""
    joined = tuple(observed for observation in observations for observed in observation)
    seen: set[str] = set()
    for observed in joined:
        if observed.key in seen:
            raise ContextError(f"context source {observed.key!r} is there twice")
        seen.add(observed.key)
    return joined


class SnapshotEntry(Record):
    value: JsonValue
    removed: str | UnsetType = UNSET


Snapshot = Mapping[str, SnapshotEntry]


class ContextEpoch(Value, kw_only=True):
    """The stored state of one epoch. `snapshot` is its JSON."""

    baseline: str
    baseline_seq: Seq
    snapshot: str


class Generation(Value):
    """A fresh Baseline System Context with its snapshot."""

    baseline: str
    snapshot: Snapshot


class InitializationBlocked(Value):
    keys: tuple[str, ...]


class Unchanged(Value):
    pass


class Updated(Value):
    text: str
    snapshot: Snapshot


class ReplacementReady(Value):
    generation: Generation


class ReplacementBlocked(Value):
    keys: tuple[str, ...]


Reconciled = Unchanged | Updated | ReplacementReady | ReplacementBlocked


def initialize(observation: Observation) -> Generation | InitializationBlocked:
    """The first baseline. Any unavailable source blocks it, so a baseline is always complete."""
    missing = tuple(observed.key for observed in observation if not observed.available)
    if missing:
        return InitializationBlocked(missing)
    return _generation(observation)


def reconcile(observation: Observation, snapshot: Snapshot) -> Reconciled:
    """Compare with the snapshot and decide on exactly one next action."""
    present = {observed.key for observed in observation}
    removed_keys = sorted(key for key in snapshot if key not in present)
    if any(snapshot[key].removed is UNSET for key in removed_keys):
        return replace(observation, snapshot)
    try:
        changes = [_change(observed, snapshot.get(observed.key)) for observed in observation]
    except msgspec.ValidationError:
        # A stored value of another shape cannot be compared: start over with a full baseline.
        return replace(observation, snapshot)
    # Rendered last, because a replacement would have discarded all updates.
    texts = [_text(observed.key, render()) for observed, render in changes if render is not None]
    texts.extend(_removal(snapshot[key]) for key in removed_keys)
    if not texts:
        return Unchanged()
    return Updated(_JOINER.join(texts), _advanced(changes, snapshot))


def replace(observation: Observation, snapshot: Snapshot) -> ReplacementReady | ReplacementBlocked:
    """A fresh generation, unless a source in the snapshot is unavailable now."""
    missing = tuple(
        observed.key
        for observed in observation
        if not observed.available and observed.key in snapshot
    )
    if missing:
        return ReplacementBlocked(missing)
    available = tuple(observed for observed in observation if observed.available)
    return ReplacementReady(_generation(available))


def encode_snapshot(snapshot: Snapshot) -> str:
    return codec.encode(dict(snapshot)).decode()


@lru_cache(maxsize=_SNAPSHOTS_KEPT)
def decode_snapshot(text: str) -> Snapshot:
    """Read a stored snapshot. Kept, because every turn compares with the one before."""
    try:
        snapshot = codec.decode(dict[str, SnapshotEntry], text)
    except msgspec.DecodeError as error:
        raise SnapshotDecodeError(str(error)) from error
    for key, entry in snapshot.items():
        if KEY.fullmatch(key) is None or entry.removed == "":
            raise SnapshotDecodeError(f"invalid snapshot entry {key!r}")
    return MappingProxyType(snapshot)


def keys(snapshot: str) -> frozenset[str]:
    """The source keys in a stored snapshot; empty if it cannot be read."""
    try:
        return frozenset(decode_snapshot(snapshot))
    except SnapshotDecodeError:
        return frozenset()


_Change = tuple[Observed, Renderer | None]
"""A source, and the renderer of its text if it changed."""


def _change(observed: Observed, stored: SnapshotEntry | None) -> _Change:
    if not observed.available:
        return observed, None
    if stored is None:
        return observed, observed.baseline
    return observed, observed.update(stored.value)


def _advanced(changes: Sequence[_Change], snapshot: Snapshot) -> Snapshot:
    """The next snapshot: changed sources with their new value, the others as stored."""
    entries = {
        observed.key: snapshot.get(observed.key) if render is None else _entry(observed)
        for observed, render in changes
    }
    return {key: entry for key, entry in entries.items() if entry is not None}


def _removal(entry: SnapshotEntry) -> str:
    assert isinstance(entry.removed, str)
    return entry.removed


def _generation(observation: Sequence[Observed]) -> Generation:
    texts = [_text(observed.key, observed.baseline()) for observed in observation]
    return Generation(_JOINER.join(texts), {item.key: _entry(item) for item in observation})


def _entry(observed: Observed) -> SnapshotEntry:
    removed = UNSET if observed.removed is None else _text(observed.key, observed.removed())
    return SnapshotEntry(value=observed.encoded, removed=removed)


def _text(key: str, text: str) -> str:
    if not text.strip():
        raise ContextError(f"context source {key!r} rendered no text")
    return text


def _never() -> str:
    raise AssertionError("an unavailable source has nothing to render")


def _never_update(stored: JsonValue) -> Renderer | None:
    raise AssertionError(f"an unavailable source cannot be compared with {stored!r}")
