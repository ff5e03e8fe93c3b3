"""The `perdure` command as its users have it: a process, its output, its status."""

import os
import select
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.tidy.source_tree import ROOT

PATIENCE_SECONDS: Final = 30
MODEL: Final = ("--model", "demo/demo")


class Installation:
    """A data directory, a project to work in, and the environment of whoever uses them."""

    def __init__(self, root: Path) -> None:
        self.data_dir = root / "data"
        self.project = root / "project"
        self.project.mkdir()
        (self.project / "one.txt").write_text("one\n", encoding="utf-8")
        self.variables: dict[str, str] = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PERDURE_DATA_DIR": str(self.data_dir),
        }

    def perdure(
        self, *arguments: str, input: str = "", variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end, without a terminal."""
        return subprocess.run(
            command(*arguments),
            cwd=self.project,
            env={**self.variables, **(variables or {})},
            input=input,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    @contextmanager
    def started(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.PIPE
    ) -> Generator[subprocess.Popen[str]]:
        """A process that runs beside the test and does not outlive it."""
        with subprocess.Popen(
            command(*arguments),
            cwd=self.project,
            env=self.variables,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def server(self, *arguments: str) -> Generator[str]:
        """A server on some port of this machine; its URL."""
        with self.started("serve", "--port", "0", *arguments) as process:
            yield address_of(process)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "perdure.cli.main", *arguments]


def address_of(process: subprocess.Popen[str]) -> str:
    """The URL that a starting server prints first."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "listening on" in line, line
    return line.split()[-1]


def shown_until(terminal: int, text: str) -> str:
    """What appears on a terminal up to `text`."""
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], PATIENCE_SECONDS)
        assert ready, f"{text!r} was not shown: {shown!r}"
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
