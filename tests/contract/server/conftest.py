"""The runtime that a test's servers are made of."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.contract.server.served_runtime import Backend, open_backend


@pytest.fixture
async def backend(tmp_path: Path) -> AsyncGenerator[Backend]:
    async with open_backend(tmp_path) as opened:
        yield opened


@pytest.fixture
async def port(backend: Backend) -> AsyncGenerator[int]:
    async with backend.port(backend.settings(body_bytes_max=100_000)) as number:
        yield number
