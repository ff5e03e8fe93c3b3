"""System Context: facts shown to the model once, then told again only when they change.

Pure algebra. A Context Source is a key, a codec, and renderers; an Observation is one look at all
of them, made by the shell. `initialize`, `reconcile` and `replace` turn observations into the exact
text to send and the Context Snapshot to compare with next time. Renderers run only for text that
is really needed. Keys are unique; text is never empty; pieces are joined by a blank line.
"""

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from perdure.schema import codec
from perdure.schema.codec import JsonValue, Record
from perdure.schema.ids import Seq

V = TypeVar("V")

KEY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._/-]*")
_JOINER: Final = "\n\n"


class Unavailable(enum.Enum):
    """Could not be observed now. Not the same as observed to be absent."""

    UNAVAILABLE = "unavailable"


UNAVAILABLE: Final = Unavailable.UNAVAILABLE


class ContextError(Exception):
    """A source that breaks the rules: a malformed or repeated key, an empty rendering."""


class SnapshotDecodeError(Exception):
    """A stored Context Snapshot that cannot be read. No request may be sent on a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSource(Generic[V]):
    """One independently observed typed value. `removed` makes it removable."""

    key: str
    type: type[V]
    """What the value is; its JSON form is stored and compared."""
    baseline: Callable[[V], str]
    update: Callable[[V, V], str]
    """Previous and current value -> text that states the current one."""
    removed: Callable[[V], str] | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """One source with what was seen of it; the value's type is closed over."""

    key: str
    available: bool
    encoded: JsonValue
    baseline: Callable[[], str]
    update: Callable[[JsonValue], str | None]
    """Stored JSON -> the update text; None when nothing changed. Raises msgspec.ValidationError."""
    removed: Callable[[], str] | None


Observation = tuple[Observed, ...]


def make(source: ContextSource[V], value: V | Unavailable) -> Observed:
    """Hide the value's type, so that differently typed sources compose."""
    if KEY.fullmatch(source.key) is None:
        raise ContextError(f"context source key {source.key!r} is not namespace/name")
    if isinstance(value, Unavailable):
        return Observed(source.key, False, None, _never, _never_update, None)
    current = value
    encoded = codec.to_json_value(current)

    def update(stored: JsonValue) -> str | None:
        previous = msgspec.convert(stored, source.type)
        if codec.to_json_value(previous) == encoded:
            return None
        return source.update(previous, current)

    removed = source.removed
    return Observed(
        source.key,
        True,
        encoded,
        lambda: source.baseline(current),
        update,
        None if removed is None else lambda: removed(current),
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEpoch:
    """The stored state of one epoch. `snapshot` is its JSON."""

    baseline: str
    baseline_seq: Seq
    snapshot: str


@dataclass(frozen=True, slots=True)
class Generation:
    """A fresh Baseline System Context with its snapshot."""

    baseline: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class InitializationBlocked:
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unchanged:
    pass


@dataclass(frozen=True, slots=True)
class Updated:
    text: str
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class ReplacementReady:
    generation: Generation


@dataclass(frozen=True, slots=True)
class ReplacementBlocked:
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
    texts = [text for _, _, text in changes if text is not None]
    for key in gone:
        removed = snapshot[key].removed
        assert isinstance(removed, str)
        texts.append(removed)
    if not texts:
        return Unchanged()
    entries = {key: entry for key, entry, _ in changes if entry is not None}
    return Updated(_JOINER.join(texts), entries)


def replace(
    observation: Observation, snapshot: Snapshot
) -> ReplacementReady | ReplacementBlocked:
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


def _change(
    observed: Observed, stored: SnapshotEntry | None
) -> tuple[str, SnapshotEntry | None, str | None]:
    """Key, the entry to keep from now on, and the text to tell, if any."""
    if not observed.available:
        return observed.key, stored, None
    if stored is None:
        return observed.key, _entry(observed), _text(observed.key, observed.baseline())
    text = observed.update(stored.value)
    if text is None:
        return observed.key, stored, None
    return observed.key, _entry(observed), _text(observed.key, text)


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


def _never_update(stored: JsonValue) -> str | None:
    raise AssertionError(f"an unavailable source cannot be compared with {stored!r}")
