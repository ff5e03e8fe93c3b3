"""OpenTelemetry: spans and metrics reach the collector, and contain no text of a conversation."""

import asyncio

import pytest

from perdure.host import telemetry
from perdure.runtime.ops.metrics import Metrics
from perdure.schema.models.model import TokenCache, TokenUsage
from tests.contract.host.loopback import replying, response, serving


def measure_failure() -> None:
    with (
        telemetry.exporting("1.2.3") as telemetry_of_server,
        pytest.raises(ValueError, match="hunter2"),
        Metrics(telemetry_of_server).timed("turn", session="ses_1"),
    ):
        raise ValueError("the answer quotes hunter2")


def measure() -> None:
    """In a thread: sending is the exporter's own business, and it waits for its receiver."""
    with telemetry.exporting("1.2.3") as telemetry_of_server:
        measures = Metrics(telemetry_of_server)
        with measures.timed("turn", session="ses_1", model="fake/m"):
            measures.observe("commit", 0.002)
        with measures.timed("tool", session="ses_1", tool="read"):
            pass
        tokens = TokenUsage(input=10, output=3, reasoning=2, cache=TokenCache(read=5, write=1))
        measures.observe_usage("fake/m", tokens, 0.25)
        measures.count("turn.failed")
        measures.observe_baseline("baseline")


async def test_spans_and_metrics_are_sent_before_the_process_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(replying(response(b""))) as collector, asyncio.timeout(20):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        await asyncio.to_thread(measure)
    sent = {request.target: request.body for request in collector.requests}
    assert sent.keys() == {"/v1/traces", "/v1/metrics"}
    for name in (b"chat m", b"execute_tool read", b"gen_ai.conversation.id", b"gen_ai.tool.name"):
        assert name in sent["/v1/traces"]
    assert b"ses_1" in sent["/v1/traces"]
    assert b"1.2.3" in sent["/v1/traces"]
    for name in (
        b"perdure.duration",
        b"perdure.count",
        b"perdure.baseline.size",
        b"perdure.cost",
        b"gen_ai.client.operation.duration",
        b"gen_ai.client.token.usage",
        b"gen_ai.provider.name",
        b"gen_ai.request.model",
    ):
        assert name in sent["/v1/metrics"]
    assert b"ses_1" not in sent["/v1/metrics"]


async def test_a_failed_span_names_the_kind_of_failure_and_not_its_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(replying(response(b""))) as collector, asyncio.timeout(20):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        await asyncio.to_thread(measure_failure)
    sent = {request.target: request.body for request in collector.requests}
    assert b"ValueError" in sent["/v1/traces"]
    assert b"hunter2" not in sent["/v1/traces"]


async def test_a_collector_that_is_gone_holds_up_nobody_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(replying(response(b""))) as collector:
        gone = collector.url
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with asyncio.timeout(15):
        await asyncio.to_thread(measure)
