"""A server with the page, a model with a script, and a browser."""

import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page

from tests.acceptance.conftest import api, provider
from tests.clients import equipment as published
from tests.clients.equipment import Equipment
from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider
from tests.web.browser import built_page, opened_browser, opened_page
from tests.web.screen import Screen

__all__ = ["api", "provider"]

_HERE: Final = str(Path(__file__).parent)
_SECONDS_MAX: Final = 180
"""The first test installs the browser and builds the page."""
_ASKED: Final = [
    {"action": action, "resource": resource, "effect": effect}
    for action, resource, effect in (
        ("bash", "*", "allow"),
        ("edit", "*", "allow"),
        ("bash", "rm *", "ask"),
        ("edit", "deploy*", "ask"),
    )
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(_HERE):
            item.add_marker(pytest.mark.timeout(_SECONDS_MAX))


@pytest.fixture
async def equipment() -> Equipment:
    return await published.install()


@pytest.fixture
async def page_directory() -> str:
    return str(await built_page())


@pytest.fixture
async def browser(equipment: Equipment) -> AsyncGenerator[Browser]:
    async with opened_browser(equipment) as opened:
        yield opened


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    made = make_folders(tmp_path, provider, permissions=_ASKED)
    subprocess.run(["git", "init", "--quiet", made.project], check=True)
    (made.project / "notes.txt").write_text("one\ntwo\nthree\n")
    (made.project / "deploy.sh").write_text("#!/bin/sh\nrsync build/ host:/srv\n")
    return made


@pytest.fixture
async def instance(folders: ProjectFolders, page_directory: str) -> AsyncGenerator[Instance]:
    async with running(folders, web_directory=page_directory) as opened:
        yield opened


@pytest.fixture
async def page(browser: Browser) -> AsyncGenerator[Page]:
    async with opened_page(browser) as opened:
        yield opened


@pytest.fixture
async def screen(page: Page, api: Api) -> Screen:
    return Screen(page, api)
