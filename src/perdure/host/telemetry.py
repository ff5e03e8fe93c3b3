"""Spans and metrics for OpenTelemetry, if its packages are installed and an exporter is set up.

Requests to models and calls of tools have the names of its semantic conventions for generative AI,
so that tools which know those show them; what only Perdure has is named `perdure.`.

A program that embeds Perdure and has set up OpenTelemetry gets them automatically, through its API.
The server sets it up from the usual OTEL_ variables. Without packages or an endpoint nothing is
imported. Attributes name Sessions, agents, models and tools; never content.
A failed span has the class of its exception.
"""

import os
from collections.abc import Generator, Iterator, Mapping
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
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from perdure.schema.models.model import TokenUsage

_NAME: Final = "perdure"
_CONVERSATION: Final = "gen_ai.conversation.id"
_OPERATIONS: Final = {"turn": "chat", "tool": "execute_tool"}
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

        self._operations = meter.create_histogram(
            "gen_ai.client.operation.duration", unit="s", description="Requests to models."
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", unit="{token}", description="Tokens of one request."
        )
        self._cost = meter.create_counter(
            "perdure.cost", unit="USD", description="What requests to models have cost."
        )

    def span(self, name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:
        title, kind = f"perdure.{name}", SpanKind.INTERNAL
        if name == "turn":
            title, kind = f"chat {_split(attributes.get('model', ''))[1]}", SpanKind.CLIENT
        elif name == "tool":
            title = f"execute_tool {attributes.get('tool', '')}"
        return self._span(title, kind, dict(_conventional(name, attributes)))

    @contextmanager
    def _span(self, title: str, kind: SpanKind, attributes: Mapping[str, str]) -> Generator[object]:
        # An exception is named by its class alone: its text may quote content and secrets.
        with self._tracer.start_as_current_span(
            title,
            kind=kind,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
                raise

    def record(self, name: str, seconds: float, attributes: Mapping[str, str]) -> None:
        self._durations.record(seconds, {"perdure.part": name})
        if name == "turn":
            named = dict(_conventional(name, attributes))
            # One series for each Session would be without end.
            named.pop(_CONVERSATION, None)
            self._operations.record(seconds, named)

    def use(self, model: str, tokens: TokenUsage, cost: float) -> None:
        named = dict(_conventional("turn", {"model": model}))
        cached = tokens.cache.read + tokens.cache.write
        counts = {"input": tokens.input + cached, "output": tokens.output + tokens.reasoning}
        for kind, count in counts.items():
            self._tokens.record(count, {**named, "gen_ai.token.type": kind})
        self._cost.add(cost, named)

    def count(self, name: str, amount: int) -> None:
        self._counts.add(amount, {"perdure.event": name})

    def size(self, baseline_chars: int) -> None:
        self._baseline.record(baseline_chars)


def _conventional(name: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The attributes under the names of the conventions, or under our own where there are none."""
    if name in _OPERATIONS:
        yield "gen_ai.operation.name", _OPERATIONS[name]
    for key, value in attributes.items():
        match key:
            case "session":
                yield _CONVERSATION, value
            case "model":
                provider, model = _split(value)
                yield "gen_ai.provider.name", provider
                yield "gen_ai.request.model", model
            case "tool":
                yield "gen_ai.tool.name", value
            case _:
                yield f"perdure.{key}", value


def _split(model: str) -> tuple[str, str]:
    provider, _, name = model.partition("/")
    return provider, name


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
