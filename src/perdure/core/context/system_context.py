"""System Context: facts shown to the model once, then told again only when they change.

Pure algebra. A Context Source is a key, a codec, and renderers; an Observation is one look at all
of them, made by the shell. `initialize`, `reconcile` and `replace` turn observations into the exact
text to send and the Context Snapshot to compare with next time. Renderers run only for text that
is really needed. Keys are unique; text is never empty; pieces are joined by a blank line.
"""

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from perdure.schema import codec
from perdure.schema.codec import JsonValue, Record
from perdure.schema.ids import Seq
from perdure.schema.value import Value

V = TypeVar("V")

KEY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._/-]*")
_JOINER: Final = "\n\n"


class Unavailable(enum.Enum):
    """Could not be observed now. Not the same as observed to be absent."""

    UNAVAILABLE = "unavailable"


UNAVAILABLE: Final = Unavailable.UNAVAILABLE


class ContextError(ValueError):
    """A source that breaks the rules: a malformed or repeated key, an empty rendering."""


class SnapshotDecodeError(Exception):
    """A stored Context Snapshot that cannot be read. No request may be sent on a guess."""


class ContextSource(Value, Generic[V], kw_only=True):
    """One independently observed typed value. `removed` makes it removable."""

    key: str
    type: type[V]
    """What the value is; its JSON form is stored and compared."""
    baseline: Callable[[V], str]
    update: Callable[[V, V], str]
    """Previous and current value -> text that states the current one."""
    removed: Callable[[V], str] | None = None


Renderer = Callable[[], str]


class Observed(Value):
    """One source with what was seen of it; the value's type is closed over."""

    key: str
    available: bool
    encoded: JsonValue
    baseline: Renderer
    update: Callable[[JsonValue], Renderer | None]
    """Stored JSON -> what renders the update; None when nothing changed.

    Raises msgspec.ValidationError when the stored value is of another shape.
    """
    removed: Renderer | None


Observation = tuple[Observed, ...]


def make(source: ContextSource[V], value: V | Unavailable) -> Observed:
    """Hide the value's type, so that differently typed sources compose."""
    if KEY.fullmatch(source.key) is None:
        raise ContextError(f"context source key {source.key!r} is not namespace/name")
    if isinstance(value, Unavailable):
        return unavailable(source.key)
    current = value
    encoded = codec.to_json_value(current)

    def update(stored: JsonValue) -> Renderer | None:
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
    """A source that could not be observed, whatever its type."""
    return Observed(key, False, None, _never, _never_update, None)


def count_missing(observation: Observation) -> int:
    """How many sources could not be observed."""
    return sum(not observed.available for observed in observation)


def combine(*observations: Observation) -> Observation:
    """All sources in caller order; a repeated key is refused."""
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
    """The first baseline. Anything unavailable blocks it: half a baseline is never stored."""
    missing = tuple(observed.key for observed in observation if not observed.available)
    if missing:
        return InitializationBlocked(missing)
    return _generation(observation)


def reconcile(observation: Observation, snapshot: Snapshot) -> Reconciled:
    """What changed since the snapshot, as exactly one next action."""
    present = {observed.key for observed in observation}
    gone = sorted(key for key in snapshot if key not in present)
    if any(snapshot[key].removed is UNSET for key in gone):
        return replace(observation, snapshot)
    try:
        changes = [_change(observed, snapshot.get(observed.key)) for observed in observation]
    except msgspec.ValidationError:
        # A stored value of another shape cannot be compared: start over with a full baseline.
        return replace(observation, snapshot)
    # Rendered only now: while a replacement was possible, every update might have been discarded.
    texts = [_text(observed.key, render()) for observed, render in changes if render is not None]
    texts.extend(_removal(snapshot[key]) for key in gone)
    if not texts:
        return Unchanged()
    return Updated(_JOINER.join(texts), _advanced(changes, snapshot))


def replace(observation: Observation, snapshot: Snapshot) -> ReplacementReady | ReplacementBlocked:
    """A fresh generation, unless something that was admitted cannot be observed now."""
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


def decode_snapshot(text: str) -> dict[str, SnapshotEntry]:
    try:
        snapshot = codec.decode(dict[str, SnapshotEntry], text)
    except msgspec.DecodeError as error:
        raise SnapshotDecodeError(str(error)) from error
    for key, entry in snapshot.items():
        if KEY.fullmatch(key) is None or entry.removed == "":
            raise SnapshotDecodeError(f"invalid snapshot entry {key!r}")
    return snapshot


def keys(snapshot: str) -> frozenset[str]:
    """The sources that a stored snapshot tells of; none when it cannot be read."""
    try:
        return frozenset(decode_snapshot(snapshot))
    except SnapshotDecodeError:
        return frozenset()


_Change = tuple[Observed, Renderer | None]
"""A source, and what renders the text to tell of it, if there is any to tell."""


def _change(observed: Observed, stored: SnapshotEntry | None) -> _Change:
    if not observed.available:
        return observed, None
    if stored is None:
        return observed, observed.baseline
    return observed, observed.update(stored.value)


def _advanced(changes: Sequence[_Change], snapshot: Snapshot) -> Snapshot:
    """What to compare with next time: told sources anew, the others as they were stored."""
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
