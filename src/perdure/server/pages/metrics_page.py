"""`GET /metrics`: the metrics of this process in the text format of Prometheus.

Names and units follow its conventions: seconds, bytes, `_total` for counters. No label has a value
that a client or a project chooses, so the number of series is bounded.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from perdure.core.histogram import Histogram
from perdure.schema.health import HealthDetail
from perdure.schema.models.model import TokenUsage
from perdure.server.http.asgi import Header
from perdure.server.response import Response

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

PATH: Final = b"/metrics"
_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),
    (b"cache-control", b"no-store"),
)
# A bucket is a quarter larger than the one before; four of them make a factor of 2.4.
_EVERY_NTH_BUCKET: Final = 4


async def get_page(runtime: "Runtime") -> Response:
    detail = await runtime.health.detail()
    metrics = runtime.health.metrics
    lines = (
        *_gauges(detail),
        *_counter("perdure_events_total", "event", "What should be rare.", metrics.counts()),
        *_counter(
            "perdure_requests_total",
            "status",
            "Answers to HTTP requests by status; streams count when they end.",
            {str(status): count for status, count in sorted(metrics.answers().items())},
        ),
        *_counter(
            "perdure_tokens_total", "kind", "Tokens of turns.", _tokens_by_kind(metrics.tokens)
        ),
        *_metric("perdure_cost_dollars_total", "counter", "What turns have cost."),
        f"perdure_cost_dollars_total {metrics.cost:.9g}",
        *_histograms(metrics.histograms()),
    )
    return Response(200, "".join(f"{line}\n" for line in lines).encode(), _HEADERS)


def _gauges(detail: HealthDetail) -> Iterator[str]:
    yield from _metric("perdure_info", "gauge", "The version that runs.")
    yield f'perdure_info{{version="{detail.version}"}} 1'
    values = (
        ("perdure_healthy", "Whether prompts can be stored.", int(detail.healthy)),
        ("perdure_running_sessions", "Sessions that this process runs.", detail.running),
        ("perdure_silent_processes", "Processes that do not respond.", len(detail.silent)),
        ("perdure_baseline_chars", "Size of the newest baseline.", detail.baseline_chars),
        ("perdure_database_bytes", "Size of the database.", detail.database.bytes),
        ("perdure_database_log_bytes", "Size of its log.", detail.database.log_bytes),
        ("process_resident_memory_bytes", "Memory.", detail.process.resident_bytes),
        ("process_open_fds", "Open files.", detail.process.open_files),
        ("process_start_time_seconds", "Start of the process.", detail.process.started / 1_000),
    )
    for name, described, value in values:
        yield from _metric(name, "gauge", described)
        yield f"{name} {value}"


def _tokens_by_kind(tokens: TokenUsage) -> Mapping[str, int]:
    return {
        "input": tokens.input,
        "output": tokens.output,
        "reasoning": tokens.reasoning,
        "cache_read": tokens.cache.read,
        "cache_write": tokens.cache.write,
    }


def _counter(name: str, label: str, described: str, counts: Mapping[str, int]) -> Iterator[str]:
    yield from _metric(name, "counter", described)
    for value, count in counts.items():
        yield f'{name}{{{label}="{value}"}} {count}'


def _histograms(histograms: Mapping[str, Histogram]) -> Iterator[str]:
    name = "perdure_duration_seconds"
    yield from _metric(name, "histogram", "How long parts of the work take.")
    for part, histogram in histograms.items():
        for bound, count in histogram.cumulative(_EVERY_NTH_BUCKET):
            yield f'{name}_bucket{{part="{part}",le="{bound:.6g}"}} {count}'
        yield f'{name}_bucket{{part="{part}",le="+Inf"}} {histogram.count}'
        yield f'{name}_sum{{part="{part}"}} {histogram.total:.9g}'
        yield f'{name}_count{{part="{part}"}} {histogram.count}'


def _metric(name: str, kind: str, described: str) -> Iterator[str]:
    yield f"# HELP {name} {described}"
    yield f"# TYPE {name} {kind}"
