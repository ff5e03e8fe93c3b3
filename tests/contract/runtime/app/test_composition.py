"""The attributes of a runtime and of an embedded host are the real objects of their types."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from pathlib import Path
from typing import Protocol, get_type_hints

import pytest

from perdure.client.generated import typed_operations, wire_groups
from perdure.embedded.host import Host, WireHost, open_host, open_wire_host
from perdure.host import environment
from perdure.ports import Clock, IdSource
from perdure.runtime.app import engine, runtime
from perdure.runtime.app.engine import Engine
from perdure.runtime.app.runtime import Runtime, RuntimeSettings, open_runtime
from perdure.runtime.plugins import plugins
from perdure.tools.api import registry


class OpenHost(Protocol):
    def __call__(
        self, directory: str, *, data_dir: str
    ) -> AbstractAsyncContextManager[Host | WireHost]: ...


PORTS = (Clock, IdSource)
"""Protocols, for which isinstance has no answer; an implementation has all of their names."""
NAMES = {
    name: value
    for module in (engine, runtime, plugins, registry, typed_operations)
    for name, value in vars(module).items()
}
"""Where the annotations are looked up that a module imports only for type checkers."""


async def test_every_attribute_of_a_runtime_is_an_instance_of_its_declared_type(
    tmp_path: Path,
) -> None:
    settings = RuntimeSettings(
        environment=environment.from_variables({"HOME": str(tmp_path)}),
        data_dir=str(tmp_path / "data"),
        default_directory=str(tmp_path),
    )
    async with open_runtime(settings) as opened:
        declared = {**get_type_hints(Runtime, NAMES), **dict(properties(Runtime))}
        assert {"sessions", "jobs", "tools", "plugins", "store"} <= declared.keys()
        assert public(opened) == declared.keys()
        for name, kind in declared.items():
            check(getattr(opened, name), kind, name)


@pytest.mark.parametrize("opened_host", [open_host, open_wire_host])
async def test_every_attribute_of_an_embedded_host_is_an_instance_of_its_declared_type(
    opened_host: OpenHost, tmp_path: Path
) -> None:
    async with opened_host(str(tmp_path), data_dir=str(tmp_path / "data")) as host:
        assert isinstance(host, Host | WireHost)
        declared = dict(properties(type(host)))
        groups = wire_groups if isinstance(host, WireHost) else typed_operations
        for name in public(host) - declared.keys():
            declared[name] = getattr(groups, f"{name.capitalize()}Group")
        assert {"tools", "plugins", "sessions", "events"} <= declared.keys()
        assert public(host) == declared.keys()
        for name, expected in declared.items():
            check(getattr(host, name), expected, name)
        assert "register" in dir(host.tools)
        assert "add" in dir(host.plugins)


def test_opening_a_runtime_loads_nothing_of_the_engine() -> None:
    program = (
        "import asyncio, sys, tempfile\n"
        "from perdure.host import environment\n"
        "from perdure.runtime.app.runtime import RuntimeSettings, open_runtime\n"
        "async def main():\n"
        "    place = tempfile.mkdtemp()\n"
        "    found = environment.from_variables({'HOME': place})\n"
        "    settings = RuntimeSettings(\n"
        "        environment=found, data_dir=place, default_directory=place)\n"
        "    async with open_runtime(settings) as runtime:\n"
        "        assert runtime.sessions.active() == ()\n"
        "        print(*(name for name in sys.modules if name.startswith('perdure.')))\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    loaded = set(ran.stdout.split())
    assert "perdure.runtime.app.runtime" in loaded
    assert Engine.__module__ not in loaded
    assert not {name for name in loaded if name.startswith(("perdure.location", "perdure.tools"))}


def public(value: object) -> set[str]:
    """The public attributes of an object, without its methods."""
    return {
        name
        for name in dir(value)
        if not name.startswith("_") and not callable(getattr(type(value), name, None))
    }


def properties(kind: type[object]) -> Iterator[tuple[str, object]]:
    """The public properties of a class with their declared types."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        get = found.fget if isinstance(found, property) else getattr(found, "func", None)
        if isinstance(found, property | cached_property) and not name.startswith("_"):
            yield name, get_type_hints(get, NAMES)["return"]


def check(value: object, kind: object, name: str) -> None:
    assert isinstance(kind, type), name
    if kind in PORTS:
        assert {it for it in vars(kind) if not it.startswith("_")} <= set(dir(value)), name
    else:
        assert isinstance(value, kind), name
        assert type(value) is kind, name
        assert set(dir(kind)) <= set(dir(value)), name
