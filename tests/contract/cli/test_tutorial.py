"""docs/tutorial.md, followed literally from step 3 on, with the built-in model.

Steps 1 and 2 install the package, which the walk of README.md does, and choose a model.
"""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.tidy.source_tree import ROOT

BLOCK: Final = re.compile(r"^## (\d+)\. |^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SECONDS_MAX: Final = 100
FIRST_STEP: Final = 3


class Reader:
    """A person who pastes the blocks of the page into one shell after the other."""

    def __init__(self, root: Path) -> None:
        self._home = root / "home"
        self._folder = self._home / "perdure-tutorial" / "shop"
        self._folder.mkdir(parents=True)
        self._port = free_port()

    def paste(self, block: str) -> str:
        ran = subprocess.run(
            ["bash", "-c", block.replace("4096", str(self._port))],
            cwd=self._folder,
            env={
                "HOME": str(self._home),
                "LANG": "C.UTF-8",
                "MODEL": "demo/demo",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
        told = ran.stdout + ran.stderr
        assert ran.returncode == 0, told
        assert "Traceback" not in told
        return told

    def run_program(self, program: str) -> str:
        (self._folder / "program.py").write_text(program, encoding="utf-8")
        return self.paste("python program.py")

    def read(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8")


@pytest.mark.timeout(SECONDS_MAX)
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    blocks = list(read_blocks())
    assert [step for step, _, _ in blocks] == [3, 4, 5, 5, 6, 7, 8, 9]
    written, first, change, check, back, killed, server, program = (text for _, _, text in blocks)

    reader.paste(written)
    assert "return sum(prices) - 1" in reader.paste(first)
    changed = reader.paste(change)
    assert "+    return sum(prices)\n" in changed.replace("  +", "+")
    assert "all is well" in reader.paste(check)

    told = reader.paste(back)
    assert "undone: run" in told
    assert "restored: run" in told
    assert "+    return sum(prices)" in told
    assert reader.read("prices.py").endswith("return sum(prices)\n")

    gone_on = reader.paste(killed)
    assert "interrupted" in gone_on, gone_on

    served = reader.paste(server)
    assert "check.py" in served
    assert '"data":[{"id":"ses_' in served

    assert "return sum(prices)" in reader.run_program(program)


def read_blocks() -> Iterator[tuple[int, str, str]]:
    """The blocks of the page with their steps and languages, from the first step that is walked."""
    step = 0
    for number, language, text in BLOCK.findall(
        (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    ):
        step = int(number) if number else step
        if language and step >= FIRST_STEP:
            yield step, language, text


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
