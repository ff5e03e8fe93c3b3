"""`--local-models`: a model server on this machine is found and used, and only when asked for."""

import asyncio
from pathlib import Path

from perdure.host.environment import from_variables
from perdure.runtime.app.local_providers import find_local_providers
from perdure.runtime.app.runtime import open_runtime
from perdure.runtime.app.settings import RuntimeSettings
from perdure.schema.location import LocationRef
from tests.contract.host.loopback import replying, response, serving

TAGS = b'{"models":[{"name":"tiny:latest"}]}'


OLLAMA = replying(response(TAGS, headers="content-type: application/json\r\n"))


async def test_a_running_server_becomes_a_provider_with_its_models(tmp_path: Path) -> None:
    async with asyncio.timeout(10), serving(OLLAMA) as server:
        environment = from_variables({"HOME": str(tmp_path), "OLLAMA_HOST": server.url})
        (found,) = [p for p in await find_local_providers(environment) if p.id == "ollama"]
        settings = RuntimeSettings(
            environment=environment,
            data_dir=str(tmp_path / "data"),
            default_directory=str(tmp_path),
            local_models=True,
        )
        async with open_runtime(settings) as runtime:
            models = await runtime.locations.models(LocationRef(directory=str(tmp_path)))
    assert list(found.models) == ["tiny:latest"]
    assert ("ollama", "tiny:latest") in [(model.provider_id, model.id) for model in models]


async def test_nobody_is_asked_unless_it_is_wanted(tmp_path: Path) -> None:
    async with asyncio.timeout(10), serving(OLLAMA) as server:
        settings = RuntimeSettings(
            environment=from_variables({"HOME": str(tmp_path), "OLLAMA_HOST": server.url}),
            data_dir=str(tmp_path / "data"),
            default_directory=str(tmp_path),
        )
        async with open_runtime(settings) as runtime:
            models = await runtime.locations.models(LocationRef(directory=str(tmp_path)))
        assert server.requests == []
    assert [model.provider_id for model in models] == ["demo"]
