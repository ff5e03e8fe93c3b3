"""One installation for each test."""

from pathlib import Path

import pytest

from tests.contract.cli.command import Installation


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)
