"""Fixtures for pytest; enable them with `pytest_plugins = ["perdure.testing.pytest_plugin"]`.

`perdure_model` is a ScriptedModel, `perdure_host` a host with that model for async tests (with
pytest-asyncio or anyio), and `perdure_blocking_host` the same for tests without an event loop.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from importlib import import_module

import pytest

from perdure.client.blocking import OpenScope
from perdure.embedded.blocking_host import BlockingHost
from perdure.embedded.host import Host
from perdure.schema.codec import JsonValue
from perdure.testing.host import open_blocking_host, open_host
from perdure.testing.scripted_model import ScriptedModel


def _choose_async_fixture() -> Callable[..., JsonValue]:
    """The decorator for async fixtures of pytest-asyncio, or the plain one, which anyio uses."""
    try:
        return import_module("pytest_asyncio").fixture
    except ImportError:
        return pytest.fixture


@pytest.fixture
def perdure_model() -> ScriptedModel:
    """The model of `perdure_host`: script its turns before you prompt."""
    return ScriptedModel()


@_choose_async_fixture()
async def perdure_host(perdure_model: ScriptedModel) -> AsyncGenerator[Host]:
    """A host that exists for one test."""
    # Plugins run the two halves of an async fixture in different tasks; a scope needs one.
    scope = OpenScope()
    yield await scope.open(open_host(perdure_model))
    await scope.close()


@pytest.fixture
def perdure_blocking_host(perdure_model: ScriptedModel) -> Generator[BlockingHost]:
    """A host that exists for one test without an event loop."""
    with open_blocking_host(perdure_model) as host:
        yield host
