from collections.abc import Generator
from pathlib import Path

import pytest

from tests.contract.location.opened_location import Place


@pytest.fixture
def place(tmp_path: Path) -> Generator[Place]:
    made = Place(tmp_path)
    yield made
    for work in made.background:
        work.close()
