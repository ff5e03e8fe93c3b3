"""Every block of code in docs/howto runs as it stands, as a program or as a file of tests."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Final

import pytest

import perdure
from tests.contract.client.hosts import served

SOURCE: Final = Path(perdure.__file__).parent.parent
GUIDES: Final = SOURCE.parent / "docs" / "howto"
SECONDS_MAX: Final = 40
PYTEST_PLUGIN: Final = "perdure.testing.pytest_plugin"


def blocks() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for guide in sorted(GUIDES.glob("*.md")):
        text = guide.read_text(encoding="utf-8")
        code = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        found += [(f"{guide.stem}-{number}", block) for number, block in enumerate(code, start=1)]
    return found


def test_every_guide_has_examples() -> None:
    guides = {name.partition("-")[0] for name, _ in blocks()}
    assert guides >= {"bot", "client", "embed", "plugin", "provider", "testing", "tool"}


def command(block: str, folder: Path) -> tuple[str, ...]:
    """How a reader runs the block: with pytest if it is tests alone, else as a program."""
    if "import pytest\n" not in block:
        return sys.executable, "-W", "error", "-c", block
    file = folder / "test_block.py"
    file.write_text(block, encoding="utf-8")
    options = ("-q", "-W", "error", "-o", "asyncio_default_fixture_loop_scope=function")
    plugins = ("-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", PYTEST_PLUGIN)
    return sys.executable, "-m", "pytest", *options, *plugins, str(file)


@pytest.mark.parametrize("block", [pytest.param(block, id=name) for name, block in blocks()])
async def test_an_example_runs_and_says_something(tmp_path: Path, block: str) -> None:
    async with asyncio.timeout(SECONDS_MAX), served(tmp_path) as url:
        ran = await asyncio.create_subprocess_exec(
            *command(block, tmp_path),
            cwd=tmp_path / "project",
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PERDURE_URL": url},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, errors = await ran.communicate()
    assert (ran.returncode, errors.decode()) == (0, "")
    assert said.strip()
