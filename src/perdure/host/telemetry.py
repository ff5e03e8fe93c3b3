"""Spans and metrics for OpenTelemetry, if its packages are installed and an exporter is set up.

A program that embeds Perdure and has set up OpenTelemetry gets them automatically, through its API.
The server sets it up from the usual OTEL_ variables. Without packages or an endpoint nothing is
imported. Attributes name Sessions, agents, models and tools; never content.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.metrics import MeterProvider as Meters
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider as Tracers
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import TracerProvider

_NAME: Final = "perdure"
# An unreachable collector must not delay the server's shutdown, unless the user set a timeout.
_TIMEOUT: Final = "OTEL_EXPORTER_OTLP_TIMEOUT"
_TIMEOUT_SECONDS: Final = 3


class OpenTelemetry:
    """Implements runtime.ops.metrics.Telemetry; by default with the process's own providers."""

    def __init__(
        self, tracers: TracerProvider | None = None, meters: MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracers)
        meter = metrics.get_meter(_NAME, meter_provider=meters)
        self._durations = meter.create_histogram(
            "perdure.duration", unit="s", description="How long parts of a run take."
        )
        self._counts = meter.create_counter(
            "perdure.count", unit="1", description="What happened that should be rare."
        )
        self._baseline = meter.create_histogram(
            "perdure.baseline.size", unit="{char}", description="What a model is told at first."
        )

    def span(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        named = {f"perdure.{key}": value for key, value in attributes.items()}
        return self._tracer.start_as_current_span(f"perdure.{name}", attributes=named)

    def record(self, name: str, seconds: float) -> None:
        self._durations.record(seconds, {"perdure.part": name})

    def count(self, name: str, amount: int) -> None:
        self._counts.add(amount, {"perdure.event": name})

    def size(self, baseline_chars: int) -> None:
        self._baseline.record(baseline_chars)


@contextmanager
def exporting(version: str) -> Generator[OpenTelemetry]:
    """Export telemetry as the OTEL_ variables say; flushed when the scope ends."""
    resource = Resource.create({"service.name": _NAME, "service.version": version})
    timeout = None if _TIMEOUT in os.environ else _TIMEOUT_SECONDS
    tracers = Tracers(resource=resource, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=timeout)))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(timeout=timeout))
    meters = Meters([reader], resource=resource, shutdown_on_exit=False)
    try:
        yield OpenTelemetry(tracers, meters)
    finally:
        tracers.shutdown()
        meters.shutdown()
