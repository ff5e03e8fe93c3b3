"""A model that reads a PDF through its tool: shown where the provider has a form for it."""

import base64
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.acceptance.dialects import DIALECTS, Dialect
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Request, ScriptedProvider

PDF = b"%PDF-1.7\n" + b"paper" * 20
ENCODED = base64.b64encode(PDF)
SHOWN = {"anthropic-messages", "gemini", "openai-responses"}
"""Chat has no documents, and Bedrock has none in the results of tools that every model takes."""


def entry(dialect: Dialect, provider: ScriptedProvider, takes: list[str]) -> JsonObject:
    known = dialect.entry(provider)
    ((name, model),) = known["models"].items()
    capabilities = {"tools": True, "input": takes, "output": ["text"]}
    return {**known, "models": {name: {**model, "capabilities": capabilities}}}


async def told_of(
    root: Path, provider: ScriptedProvider, speaks: Dialect, takes: list[str]
) -> Request:
    """The request after the model has read a document."""
    providers = {speaks.name: entry(speaks, provider, takes)}
    model = f"{speaks.name}/{speaks.model_id}"
    folders = make_folders(root, provider, providers=providers, model=model)
    (folders.project / "paper.pdf").write_bytes(PDF)
    provider.then(speaks.asks("call_1", "read", {"path": "paper.pdf"}), speaks.says("I see."))
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "read the paper")
    assert [fault for request in provider.requests for fault in speaks.faults(request)] == []
    return provider.requests[-1]


@pytest.mark.parametrize("name", DIALECTS)
async def test_a_document_is_shown_or_refused_but_never_lost_on_the_way(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    asked = await told_of(tmp_path, provider, DIALECTS[name], ["text", "image", "pdf"])
    assert (ENCODED in asked.raw) is (name in SHOWN)
    assert (b"Cannot read binary file: paper.pdf" in asked.raw) is (name not in SHOWN)


@pytest.mark.parametrize("name", sorted(SHOWN))
async def test_a_model_that_takes_no_documents_is_not_given_one(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    asked = await told_of(tmp_path, provider, DIALECTS[name], ["text", "image"])
    assert ENCODED not in asked.raw
    assert b"Cannot read binary file: paper.pdf" in asked.raw
