"""A provider with a script and a place of its own; what is kept there is for the test to spoil."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.figures import Figure
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, scripted_provider


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider, figure: Figure) -> ProjectFolders:
    figure("museum databases", 1)
    return make_folders(tmp_path, provider)
