"""`perdure run` says how the work ended: by its exit status and by the last line on stderr."""

import asyncio
import json
import subprocess
from collections.abc import Sequence

import pytest

from tests.contract.cli.command import Installation
from tests.support.scripted_provider import (
    Reply,
    ScriptedProvider,
    cut,
    refusal,
    scripted_provider,
    text,
)

HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


async def ran(
    installation: Installation, provider: ScriptedProvider, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run one prompt with the provider as the only model."""
    api = {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": provider.url}
    settings = {"api": api, "models": {"m": {"name": "M"}}}
    (installation.project / "opencode.json").write_text(
        json.dumps({"providers": {"scripted": settings}}), encoding="utf-8"
    )
    installation.variables["PERDURE_TRUSTED"] = str(installation.project)
    prompt = ("run", "--model", "scripted/m", *arguments, "hello")
    return await asyncio.to_thread(installation.perdure, *prompt)


@pytest.mark.parametrize(
    "first",
    [
        refusal(429, retry_after_ms="1"),
        refusal(500, retry_after_ms="1"),
        refusal(502, HTML, retry_after_ms="1"),
        refusal(503, retry_after_ms="1"),
    ],
    ids=["429", "500", "html 502", "503"],
)
async def test_a_refusal_that_passes_is_waited_for(
    installation: Installation, first: Reply
) -> None:
    async with scripted_provider() as provider:
        provider.then(first)
        provider.otherwise = lambda request: text("the answer")
        done = await ran(installation, provider)
    assert done.returncode == 0, done.stderr
    assert "the answer" in done.stdout
    assert "trying again in 0 s (attempt 2): " in done.stderr
    assert "failed" not in done.stderr


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (refusal(401), ("401",)),
        (refusal(403), ("403",)),
        (refusal(404), ("404",)),
        (refusal(429, retry_after_ms="1"), ("429",)),
        (refusal(500, retry_after_ms="1"), ("500",)),
        (refusal(502, HTML, retry_after_ms="1"), ("502",)),
        (cut("a"), ()),
    ],
    ids=["401", "403", "404", "429", "500", "html 502", "cut"],
)
async def test_a_refusal_that_stays_ends_with_status_one_and_its_reason(
    installation: Installation, reply: Reply, words: Sequence[str]
) -> None:
    async with scripted_provider() as provider:
        provider.otherwise = lambda request: reply
        done = await ran(installation, provider)
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("failed: ")
    assert sum(line.startswith("failed: ") for line in done.stderr.splitlines()) == 1
    assert all(word in last for word in words)


async def test_a_connection_that_is_refused_ends_with_status_one(
    installation: Installation,
) -> None:
    async with scripted_provider() as provider:
        pass  # Nothing listens at its address any more.
    done = await ran(installation, provider)
    assert done.returncode == 1, done.stderr
    assert done.stderr.splitlines()[-1].startswith("failed: ")


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "limit of output tokens"), ("content_filter", "filter")]
)
async def test_an_answer_that_was_cut_off_is_not_called_complete(
    installation: Installation, finish: str, reason: str
) -> None:
    async with scripted_provider() as provider:
        provider.otherwise = lambda request: text("half", finish=finish)
        done = await ran(installation, provider)
    assert "half" in done.stdout
    assert done.returncode == 1, done.stderr
    assert reason in done.stderr.splitlines()[-1]


async def test_an_answer_without_a_word_is_a_failure(installation: Installation) -> None:
    async with scripted_provider() as provider:
        provider.otherwise = lambda request: text("")
        done = await ran(installation, provider)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "the model ended its turn without an answer"
