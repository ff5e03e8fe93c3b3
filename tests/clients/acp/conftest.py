"""An editor before an agent whose runtime is in the test's process."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import pytest

from perdure.embedded.host import Host
from perdure.testing import ScriptedModel, open_host
from tests.clients import equipment as published
from tests.clients.acp.editor import Editor, editing
from tests.clients.acp.published_schema import PublishedSchema


@pytest.fixture(scope="session")
def schemas() -> dict[str, PublishedSchema]:
    """By name; each is read once."""
    return {}


@pytest.fixture
async def schema(schemas: dict[str, PublishedSchema]) -> PublishedSchema:
    """The first version; with the methods that are offered and not yet stable."""
    if "v1" not in schemas:
        folder = (await published.install()).folder
        schemas["v1"] = PublishedSchema(folder, "v1", unstable=True)
    return schemas["v1"]


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "one.txt").write_text("one\n")
    return folder


@pytest.fixture
def config() -> dict[str, object]:
    """The user's configuration; a test module may have another."""
    greet = {"template": "Greet $ARGUMENTS warmly.", "description": "Say hello"}
    return {"commands": {"greet": greet}}


@pytest.fixture
async def host(
    model: ScriptedModel, project: Path, config: dict[str, object]
) -> AsyncGenerator[Host]:
    async with open_host(model, directory=project, config=config, headless="wait") as opened:
        yield opened


@pytest.fixture
async def editor(schema: PublishedSchema, host: Host) -> AsyncGenerator[Editor]:
    def open_client() -> AbstractAsyncContextManager[Host]:
        return nullcontext(host)

    async with editing(schema, open_client) as opened:
        yield opened
