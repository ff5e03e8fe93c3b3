"""An instance in good health, behind the routes."""

from perdure.schema.health import DatabaseHealth, Durations, HealthDetail, ProcessHealth


class StagedHealth:
    async def detail(self) -> HealthDetail:
        return HealthDetail(
            healthy=True,
            version="0.0.0",
            problems=(),
            process=ProcessHealth(pid=1, started=0, resident_bytes=1, open_files=1),
            database=DatabaseHealth(path="/data/perdure.db", bytes=1, log_bytes=0),
            running=0,
            durations={"commit": Durations(count=1, p50=0.5, p99=0.5, longest=0.5)},
            counts={"turn.failed": 0},
            baseline_chars=0,
        )
