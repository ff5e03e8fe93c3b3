"""Fixtures of every test: an empty environment and HOME, and figures.

Files of tests are kept in memory where there is room for them: thousands of small databases would
wait for the disk most of the time. Failing disks are tested in `tests/power`. Fixtures of one area
are beside its tests. Nothing here patches the code under test.
"""

import gc
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests import figures
from tests.figures import Figure

KEPT_VARIABLES: Final = ("PATH", "TMPDIR", "LANG", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHASHSEED")
MEMORY: Final = "/dev/shm"
MEMORY_FREE_BYTES_MIN: Final = 2 * 2**30
EXAMPLES: Final = os.environ.get("PERDURE_EXAMPLES")
"""The number of examples of each property test that sets none itself."""
_NOT_OURS: Final = "PYTEST_CURRENT_TEST"
_NUMBERS: Final = count()


def pytest_configure(config: pytest.Config) -> None:
    """Put `tmp_path` into memory, unless `TMPDIR` or `--basetemp` says otherwise."""
    chosen = config.option.basetemp is not None or "TMPDIR" in os.environ
    if not chosen and _is_roomy(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
    if EXAMPLES is not None:
        # Only now: it takes a third of a second to load.
        from hypothesis import settings

        settings.register_profile("asked", max_examples=int(EXAMPLES), deadline=None)
        settings.load_profile("asked")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector: the million objects of a collection all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "call":
        figures.note_examples(item)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = (report for found in terminalreporter.stats.values() for report in found)
    if total := figures.total(reports):
        terminalreporter.section(figures.TITLE)
        terminalreporter.line(figures.block(total))


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Figure:
    """Counts what a test did; see `tests.figures`."""
    return figures.of(request.node)


@pytest.fixture(scope="session", autouse=True)
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Remove the user's environment variables while tests run; the folder of their HOMEs."""
    folder = tmp_path_factory.mktemp("homes", numbered=False)
    before = dict(os.environ)
    kept = {name: value for name, value in before.items() if name in KEPT_VARIABLES}
    pytest_own = {name: value for name, value in before.items() if name.startswith("PYTEST_")}
    own = {
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        # Tests own their projects, and put their providers there.
        "PERDURE_TRUSTED": "*",
    }
    _become(kept | pytest_own | own)
    yield folder
    _become(before)


@pytest.fixture(autouse=True)
def private_home(homes: Path) -> Iterator[Path]:
    """A new, empty HOME for each test; variables that a test sets are removed after it."""
    home = homes / str(next(_NUMBERS))
    home.mkdir(mode=0o700)
    os.environ["HOME"] = str(home)
    before = _variables()
    yield home
    after = _variables()
    for name in after.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before.items() - after.items())
    with suppress(OSError):
        home.rmdir()


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _NOT_OURS}


def _become(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _is_roomy(folder: str) -> bool:
    """Whether the folder has room for tests, and allows to execute files."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    free = found.f_bavail * found.f_frsize
    may_start = not found.f_flag & os.ST_NOEXEC
    return os.access(folder, os.W_OK) and may_start and free >= MEMORY_FREE_BYTES_MIN
