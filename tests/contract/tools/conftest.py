"""Fixtures of the tool tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.tools.tool_bench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    workbench = Workbench(tmp_path)
    with workbench.open():
        yield workbench
