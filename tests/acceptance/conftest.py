"""A provider with a script, a place of its own, and a server on it: what most tests begin with."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.api import Api
from tests.support.instance import Instance, running
from tests.support.project import Place, make_place
from tests.support.scripted_provider import ScriptedProvider, scripted_provider


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
def place(tmp_path: Path, provider: ScriptedProvider) -> Place:
    return make_place(tmp_path, provider)


@pytest.fixture
async def instance(place: Place) -> AsyncGenerator[Instance]:
    async with running(place) as opened:
        yield opened


@pytest.fixture
def api(instance: Instance) -> Api:
    return instance.api
