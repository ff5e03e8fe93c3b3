"""Health report of a running instance."""

from collections.abc import Mapping

from perdure.schema.codec import Record


class Durations(Record, frozen=True):
    """Durations in milliseconds, since the start of the process."""

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
    """Size of the write-ahead log."""


class HealthDetail(Record, frozen=True):
    healthy: bool
    version: str
    problems: tuple[str, ...]
    """Why the instance is unhealthy, in words."""
    process: ProcessHealth
    database: DatabaseHealth
    silent: tuple[str, ...]
    """Other processes on the same data directory that live and do not respond."""
    running: int
    """Sessions running in this process."""
    durations: Mapping[str, Durations]
    counts: Mapping[str, int]
    baseline_chars: int
    """Size of the newest baseline sent to a model."""
