"""Fixtures of the tool tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.tools.tool_bench import ToolBench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[ToolBench]:
    workbench = ToolBench(tmp_path)
    with workbench.open():
        yield workbench
