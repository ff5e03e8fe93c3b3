"""How an instance is, for whoever operates it."""

from collections.abc import Mapping

from perdure.schema.codec import Record


class Durations(Record, frozen=True):
    """Milliseconds since the start of the process."""

    count: int
    p50: float
    p99: float
    longest: float


class ProcessHealth(Record, frozen=True):
    pid: int
    started: int
    resident_bytes: int
    open_files: int


class DatabaseHealth(Record, frozen=True):
    path: str
    bytes: int
    log_bytes: int
    """Beside it: what was committed and is not in it yet."""


class HealthDetail(Record, frozen=True):
    healthy: bool
    version: str
    problems: tuple[str, ...]
    """What keeps it from being healthy, in words."""
    process: ProcessHealth
    database: DatabaseHealth
    running: int
    """Sessions that run here now."""
    durations: Mapping[str, Durations]
    counts: Mapping[str, int]
    baseline_chars: int
    """Of the newest baseline that was told to a model."""
