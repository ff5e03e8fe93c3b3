"""Plugins of installed packages: added at the start, and one that fails takes nothing with it."""

import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from perdure import PluginHost
from perdure.embedded.host import Host, HostScope, open_host
from tests.requirements import requirement

SOURCE = '''
import contextlib
from pathlib import Path
from perdure import tool

@tool(name="{name}_tool")
def offered() -> str:
    """Says something."""
    return "something"

@contextlib.contextmanager
def log():
    path = Path(__file__).with_suffix(".log")
    path.write_text("on")
    yield
    path.write_text("off")

class Offered:
    name = "{name}"

    def setup(self, host):
        host.tool(offered)
        host.scope(log)
        {more}

ready = Offered()
nothing = 7
'''


def install(folder: Path, name: str, *, value: str, more: str = "pass", head: str = "") -> None:
    """A package as an installer leaves it, with one entry point."""
    (folder / f"{name}_package.py").write_text(head + SOURCE.format(name=name, more=more))
    information = folder / f"{name}_package-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = f"[perdure.plugins]\n{name} = {name}_package:{value}\n"
    (information / "entry_points.txt").write_text(points)


@pytest.fixture
def packages(tmp_path: Path) -> Generator[Path]:
    """A folder that Python imports from, with what is installed into it."""
    folder = tmp_path / "packages"
    folder.mkdir()
    sys.path.insert(0, str(folder))
    try:
        yield folder
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.endswith("_package")]:
            del sys.modules[name]


def opened(root: Path, *, installed: bool = True) -> HostScope[Host]:
    return open_host(
        str(root), data_dir=str(root / "data"), resumes=False, installed_plugins=installed
    )


@requirement("S83")
async def test_an_installed_plugin_is_there_from_the_start_to_the_end(
    packages: Path, tmp_path: Path
) -> None:
    install(packages, "first", value="Offered")
    install(packages, "second", value="ready")
    async with opened(tmp_path) as perdure:
        assert perdure.plugins.names() == ("first", "second")
        assert {"first_tool", "second_tool"} <= perdure.tools.names()
        assert (packages / "first_package.log").read_text() == "on"
    assert (packages / "first_package.log").read_text() == "off"
    async with opened(tmp_path, installed=False) as perdure:
        assert perdure.plugins.names() == ()


@requirement("S83")
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("missing", {"value": "Missing"}),
        ("aimless", {"value": "nothing"}),
        ("raising", {"value": "Offered", "more": "raise ZeroDivisionError"}),
        ("half_way", {"value": "Offered", "more": "host.context('Not a key', None)"}),
        ("importing", {"value": "Offered", "head": "raise ZeroDivisionError\n"}),
        ("misspelled", {"value": "Offered", "head": "this is no Python\n"}),
    ],
)
async def test_a_plugin_that_fails_is_reported_and_left_out_whole(
    packages: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    name: str,
    broken: dict[str, str],
) -> None:
    install(packages, name, **broken)
    install(packages, "whole", value="Offered")
    with caplog.at_level(logging.WARNING):
        async with opened(tmp_path) as perdure:
            assert perdure.plugins.names() == ("whole",)
            assert perdure.tools.names() == {"whole_tool"}
    assert [f"plugin {name} was left out" in text for text in caplog.messages] == [True]


async def test_a_scope_that_fails_at_its_end_does_not_keep_the_others_open(tmp_path: Path) -> None:
    ended: list[str] = []

    class Loud:
        def __init__(self, name: str, *, fails: bool = False) -> None:
            self.name = name
            self._fails = fails

        def setup(self, host: PluginHost) -> None:
            host.scope(self.working)

        @contextmanager
        def working(self) -> Generator[None]:
            yield
            ended.append(self.name)
            if self._fails:
                raise ZeroDivisionError

    async def used() -> None:
        async with opened(tmp_path, installed=False) as perdure:
            perdure.plugins.add(Loud("one"))
            perdure.plugins.add(Loud("two", fails=True))
            perdure.plugins.add(Loud("three"))

    with pytest.raises(ZeroDivisionError):
        await used()
    assert sorted(ended) == ["one", "three", "two"]
