"""A provider with a script, a place of its own, and a server on it: what most tests begin with."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, scripted_provider


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider)


@pytest.fixture
def without_sandbox(folders: ProjectFolders) -> None:
    """For commands that write process ids: in a sandbox these are of its own PID namespace."""
    folders.configure_user(sandbox={"mode": "danger-full-access"})


@pytest.fixture
async def instance(folders: ProjectFolders) -> AsyncGenerator[Instance]:
    async with running(folders) as opened:
        yield opened


@pytest.fixture
def api(instance: Instance) -> Api:
    return instance.api
