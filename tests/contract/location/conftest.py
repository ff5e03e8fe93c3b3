from collections.abc import Generator
from pathlib import Path

import pytest

from tests.contract.location.opened_location import LocationFolders


@pytest.fixture
def folders(tmp_path: Path) -> Generator[LocationFolders]:
    made = LocationFolders(tmp_path)
    yield made
    for work in made.background:
        work.close()
