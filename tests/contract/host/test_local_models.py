"""Local model servers are found by what they answer, on this machine only, and quickly."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from perdure.host import local_models
from perdure.host.http.client import HttptoolsTransport
from perdure.host.local_models import LocalModel, LocalServer, Probe
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from tests.contract.host.loopback import Answer, Received, replying, response, serving

PROBES = {probe.kind: probe for probe in local_models.default_probes({})}


@asynccontextmanager
async def web() -> AsyncGenerator[HttptoolsTransport]:
    transport = HttptoolsTransport()
    try:
        async with asyncio.timeout(5):
            yield transport
    finally:
        await transport.aclose()


def pages(bodies: Mapping[str, JsonValue]) -> Answer:
    async def answer(request: Received, writer: asyncio.StreamWriter) -> None:
        found = bodies.get(request.target)
        missing = response(b"", status="404 Not Found")
        writer.write(missing if found is None else response(codec.encode(found)))

    return answer


async def ask(kind: str, answer: Answer) -> tuple[LocalServer, ...]:
    async with serving(answer) as server, web() as transport:
        probe = replace(PROBES[kind], origin=server.url)
        found = await local_models.discover(transport, [probe])
        assert all(request.method == "GET" for request in server.requests)
        return tuple(replace(one, base_url=one.base_url.removeprefix(server.url)) for one in found)


ANSWERS: Mapping[str, tuple[Mapping[str, JsonValue], tuple[LocalModel, ...]]] = {
    "ollama": (
        {"/api/tags": {"models": [{"name": "qwen:7b", "size": 1}, {"name": "llama"}]}},
        (LocalModel("qwen:7b"), LocalModel("llama")),
    ),
    "lm-studio": (
        {
            "/api/v0/models": {
                "data": [
                    {"id": "a", "type": "llm", "max_context_length": 8192},
                    {"id": "b", "type": "embeddings", "max_context_length": 512},
                    {
                        "id": "c",
                        "type": "vlm",
                        "max_context_length": 9000,
                        "loaded_context_length": 4096,
                    },
                ]
            }
        },
        (LocalModel("a", 8192), LocalModel("c", 4096)),
    ),
    "llama.cpp": (
        {
            "/props": {"default_generation_settings": {"n_ctx": 4096, "id": 0}},
            "/v1/models": {"object": "list", "data": [{"id": "model.gguf"}]},
        },
        (LocalModel("model.gguf", 4096),),
    ),
    "vllm": (
        {"/v1/models": {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 32768}]}},
        (LocalModel("m", 32768),),
    ),
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_server_is_found_with_its_models(kind: str) -> None:
    bodies, models = ANSWERS[kind]
    (found,) = await ask(kind, pages(bodies))
    assert (found.kind, found.base_url, found.models) == (kind, "/v1", models)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize(
    "answer",
    [
        pages({}),
        replying(response(b"<html>", headers="content-type: text/html\r\n")),
        replying(response(b'{"data":[{"id":"m"}],"models":[{"id":"x"}]}')),
        replying(response(b"[" * 50_000)),
        replying(response(b'"\xff"')),
        replying(response(b" " * 2_000_000)),
        replying(response(b"", status="302 Found", headers="location: http://127.0.0.1/\r\n")),
        replying(b"SSH-2.0-OpenSSH\r\n"),
    ],
    ids=["missing", "html", "other-shape", "deep", "not-utf8", "huge", "redirect", "not-http"],
)
async def test_an_open_port_is_no_proof(kind: str, answer: Answer) -> None:
    assert await ask(kind, answer) == ()


async def test_a_server_that_says_nothing_is_left_after_a_moment() -> None:
    async with asyncio.timeout(2):
        assert await ask("ollama", replying()) == ()


async def test_all_are_asked_at_once() -> None:
    arrived = asyncio.Barrier(2)

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        await arrived.wait()
        writer.write(response(codec.encode({"models": [{"name": "m"}]})))

    async with serving(answer) as one, serving(answer) as other, web() as transport:
        probes = [replace(PROBES["ollama"], origin=server.url) for server in (one, other)]
        assert len(await local_models.discover(transport, probes)) == 2


async def test_no_other_machine_is_asked() -> None:
    probe = replace(PROBES["vllm"], origin="http://192.0.2.1:8000")
    async with web() as transport:
        assert await local_models.discover(transport, [probe]) == ()


@pytest.mark.parametrize(
    ("setting", "origin"),
    [
        ("", "http://127.0.0.1:11434"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("http://localhost", "http://localhost:11434"),
        ("http://[::1]:99", "http://[::1]:99"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("http://gpu-box:11434", "http://127.0.0.1:11434"),
        ("http://x:notaport", "http://127.0.0.1:11434"),
    ],
)
def test_the_setting_of_ollama_counts_when_it_names_this_machine(setting: str, origin: str) -> None:
    ollama: Probe = local_models.default_probes({"OLLAMA_HOST": setting})[0]
    assert ollama.origin == origin
