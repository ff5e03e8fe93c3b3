"""Finds model servers on this machine by probing their usual ports.

Runs only on demand and only on loopback: one or two GET requests to each, without redirects, all
at once and with a short timeout. A server counts only if its answer has the expected shape.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from perdure.net import loopback
from perdure.net.transport import HttpRequest, HttpTransport, TransportError
from perdure.schema import codec
from perdure.schema.value import Value

PROBE_SECONDS_MAX: Final = 0.3
ANSWER_BYTES_MAX: Final = 1024 * 1024

ServerKind = Literal["ollama", "lm-studio", "llama.cpp", "vllm"]


class LocalModel(Value):
    id: str
    context_limit: int | None = None
    """In tokens; None when the server does not report it."""


class LocalServer(Value, kw_only=True):
    kind: ServerKind
    base_url: str
    """The base URL of its OpenAI Chat API, for a Route."""
    models: tuple[LocalModel, ...]


class Probe(Value, kw_only=True):
    """Recognises one kind of server."""

    kind: ServerKind
    origin: str
    paths: tuple[str, ...]
    read: Callable[[Sequence[bytes]], tuple[LocalModel, ...]]
    """Reads the answers; raises msgspec.DecodeError if they are not of this kind."""


def default_probes(environment: Mapping[str, str]) -> tuple[Probe, ...]:
    """Probes of the usual ports; for Ollama, of OLLAMA_HOST if it is on this machine."""
    ollama = _ollama_origin(environment.get("OLLAMA_HOST", ""))
    return (
        Probe(kind="ollama", origin=ollama, paths=("/api/tags",), read=_read_ollama),
        Probe(
            kind="lm-studio",
            origin="http://127.0.0.1:1234",
            paths=("/api/v0/models",),
            read=_read_lm_studio,
        ),
        Probe(
            kind="llama.cpp",
            origin="http://127.0.0.1:8080",
            paths=("/props", "/v1/models"),
            read=_read_llama_cpp,
        ),
        Probe(
            kind="vllm",
            origin="http://127.0.0.1:8000",
            paths=("/v1/models",),
            read=_read_vllm,
        ),
    )


async def discover(transport: HttpTransport, probes: Sequence[Probe]) -> tuple[LocalServer, ...]:
    """The servers that answered correctly in time, in the order of `probes`."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run(transport, probe), name=probe.kind) for probe in probes]
    return tuple(server for task in tasks if (server := task.result()) is not None)


async def _run(transport: HttpTransport, probe: Probe) -> LocalServer | None:
    if not loopback.is_loopback_domain(urlsplit(probe.origin).hostname or ""):
        return None
    try:
        async with asyncio.timeout(PROBE_SECONDS_MAX):
            bodies = [await _get(transport, probe.origin + path) for path in probe.paths]
        models = probe.read(bodies)
    except (TransportError, TimeoutError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return LocalServer(kind=probe.kind, base_url=f"{probe.origin}/v1", models=models)


async def _get(transport: HttpTransport, url: str) -> bytes:
    request = HttpRequest(url=url, headers={"accept": "application/json"}, body=(), method="GET")
    async with transport.open(request) as response:
        if response.status != 200:
            raise TransportError(f"HTTP {response.status}")
        body = b""
        async for chunk in response.chunks:
            body += chunk
            if len(body) > ANSWER_BYTES_MAX:
                raise TransportError("the answer is too large")
        return body


class _OllamaModel(msgspec.Struct):
    name: str


class _OllamaTags(msgspec.Struct):
    models: list[_OllamaModel]


class _LmStudioModel(msgspec.Struct):
    id: str
    type: str
    max_context_length: int
    loaded_context_length: int | None = None


class _LmStudioModels(msgspec.Struct):
    data: list[_LmStudioModel]


class _LlamaSettings(msgspec.Struct):
    n_ctx: int


class _LlamaProps(msgspec.Struct):
    default_generation_settings: _LlamaSettings


class _NamedModel(msgspec.Struct):
    id: str


class _NamedModels(msgspec.Struct):
    data: list[_NamedModel]


class _VllmModel(msgspec.Struct):
    id: str
    owned_by: Literal["vllm"]
    max_model_len: int | None = None


class _VllmModels(msgspec.Struct):
    data: list[_VllmModel]


def _read_ollama(bodies: Sequence[bytes]) -> tuple[LocalModel, ...]:
    return tuple(LocalModel(model.name) for model in codec.decode(_OllamaTags, bodies[0]).models)


def _read_lm_studio(bodies: Sequence[bytes]) -> tuple[LocalModel, ...]:
    return tuple(
        LocalModel(model.id, model.loaded_context_length or model.max_context_length)
        for model in codec.decode(_LmStudioModels, bodies[0]).data
        if model.type in ("llm", "vlm")
    )


def _read_llama_cpp(bodies: Sequence[bytes]) -> tuple[LocalModel, ...]:
    context = codec.decode(_LlamaProps, bodies[0]).default_generation_settings.n_ctx
    return tuple(
        LocalModel(model.id, context) for model in codec.decode(_NamedModels, bodies[1]).data
    )


def _read_vllm(bodies: Sequence[bytes]) -> tuple[LocalModel, ...]:
    return tuple(
        LocalModel(model.id, model.max_model_len)
        for model in codec.decode(_VllmModels, bodies[0]).data
    )


def _ollama_origin(setting: str) -> str:
    usual = "http://127.0.0.1:11434"
    try:
        url = urlsplit(setting if "://" in setting else f"http://{setting}")
        host, port = url.hostname or "", url.port or 11434
    except ValueError:
        return usual
    if not loopback.is_loopback_domain(host):
        return usual
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
