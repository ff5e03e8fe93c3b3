"""Fixtures: a store on a real file, with one Session in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from perdure.store.log.event_store import EventStore
from tests.fixtures import Facts, append, opened_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[EventStore]:
    async with opened_store(tmp_path / "p.db") as store:
        yield store


@pytest.fixture
async def facts(store: EventStore) -> Facts:
    """The facts of a Session that has just been created."""
    facts = Facts()
    await append(store, [facts.created()])
    return facts
