"""One runtime for many faults, and a watch for anything that escapes from it."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from perdure.schema.codec import JsonValue
from tests.provider_faults.sweep import Escaped, Sweep, sweeping


@pytest.fixture
async def sweep() -> AsyncIterator[Sweep]:
    escaped = Escaped()
    complaints: list[JsonValue] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    logger = logging.getLogger("perdure")
    logger.addHandler(escaped)
    try:
        async with sweeping() as sweep:
            yield sweep
    finally:
        logger.removeHandler(escaped)
    assert escaped.messages == []
    assert complaints == []
