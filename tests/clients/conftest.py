"""A server in the test's process, and the published clients that talk to it."""

import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.conftest import api, instance, provider
from tests.clients import equipment as published
from tests.clients.equipment import Equipment
from tests.clients.terminal import Terminal
from tests.clients.terminal_ui import attached
from tests.support.instance import Instance
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider

__all__ = ["api", "instance", "provider"]

_HERE: Final = str(Path(__file__).parent)
_SECONDS_MAX: Final = 180
"""The first test installs the clients."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE):
            item.add_marker(pytest.mark.timeout(_SECONDS_MAX))


@pytest.fixture
async def equipment() -> Equipment:
    return await published.install()


@pytest.fixture
def settings() -> dict[str, object]:
    """Top-level keys of the project's configuration; a test module may have others."""
    return {}


@pytest.fixture
def folders(
    tmp_path: Path, provider: ScriptedProvider, settings: dict[str, object]
) -> ProjectFolders:
    made = make_folders(tmp_path, provider, **settings)
    subprocess.run(["git", "init", "--quiet", made.project], check=True)
    (made.project / "notes.txt").write_text("one\ntwo\nthree\n")
    return made


@pytest.fixture
async def tui(equipment: Equipment, instance: Instance) -> AsyncGenerator[Terminal]:
    """The terminal UI on its first screen."""
    async with attached(equipment, instance.folders, instance.api.port) as opened:
        yield opened
