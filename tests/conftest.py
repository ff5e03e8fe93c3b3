"""What every test gets: nothing of the machine's own configuration, and no way to hang.

Fixtures of one area live beside its tests. Nothing here patches the code under test.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

KEPT_VARIABLES = ("PATH", "TMPDIR", "LANG", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHASHSEED")


@pytest.fixture(autouse=True)
def private_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new, empty HOME: no test reads or writes the configuration of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    before = dict(os.environ)
    kept = {name: value for name, value in before.items() if name in KEPT_VARIABLES}
    pytest_own = {name: value for name, value in before.items() if name.startswith("PYTEST_")}
    os.environ.clear()
    own = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    os.environ.update(kept | pytest_own | own)
    try:
        yield home
    finally:
        os.environ.clear()
        os.environ.update(before)
