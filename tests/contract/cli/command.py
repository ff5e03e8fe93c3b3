"""The `perdure` command as its users have it: a process, its output, its status."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from tests.support import fork_server
from tests.support.fork_server import Child
from tests.tidy.source_tree import ROOT

PATIENCE_SECONDS: Final = 30
_PASSED_ON: Final = frozenset({"PYTHONPATH", "PYTHONHASHSEED"})
MODEL: Final = ("--model", "demo/demo")


@dataclass(frozen=True, slots=True)
class Seated:
    """A process whose questions are shown on a terminal, and answered there."""

    child: Child
    terminal: int
    said: TextIO
    """What it writes to its output."""

    def answer(self, typed: str) -> str:
        """Type this; what the process has said when it ends."""
        os.write(self.terminal, typed.encode())
        said = self.said.read()
        self.child.wait(PATIENCE_SECONDS)
        return said


class Installation:
    """A data directory, a project to work in, and the environment of their user."""

    def __init__(self, root: Path) -> None:
        self.data_dir = root / "data"
        self.project = root / "project"
        self.project.mkdir()
        (self.project / "one.txt").write_text("one\n", encoding="utf-8")
        self.variables: dict[str, str] = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PERDURE_DATA_DIR": str(self.data_dir),
            "PERDURE_WITHOUT_PAGE": "1",
        }

    def perdure(
        self,
        *arguments: str,
        input: str = "",
        variables: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end, without a terminal."""
        environment = {**self.variables, **(variables or {})}
        if self._speaks_to_python(environment):
            return subprocess.run(
                command(*arguments),
                cwd=directory or self.project,
                env=environment,
                input=input,
                capture_output=True,
                text=True,
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        return fork_server.run(
            arguments,
            variables=environment,
            directory=directory or self.project,
            input=input,
            seconds_max=PATIENCE_SECONDS,
        )

    def python(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a Python program that uses the library."""
        return subprocess.run(
            [sys.executable, "-c", program, *arguments],
            cwd=self.project,
            env=self.variables,
            stdin=subprocess.DEVNULL,
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
    def at_terminal(self, *arguments: str) -> Generator[Seated]:
        """A process at a terminal, which is ended with the test."""
        with terminal() as (ours, theirs):
            child, said = fork_server.started(
                arguments,
                variables=self.variables,
                directory=self.project,
                input=theirs,
                errors=theirs,
            )
            with said:
                try:
                    yield Seated(child, ours, said)
                finally:
                    child.end()

    @contextmanager
    def server(self, *arguments: str) -> Generator[str]:
        """A server on some port of this machine; its URL."""
        with open(os.devnull, "wb") as errors:
            child, said = fork_server.started(
                ("serve", "--port", "0", *arguments),
                variables=self.variables,
                directory=self.project,
                errors=errors.fileno(),
            )
        with said:
            try:
                yield address_in(said.readline())
            finally:
                child.end()

    def _speaks_to_python(self, environment: Mapping[str, str]) -> bool:
        """Whether a variable is for the interpreter itself, which looks at them when it starts."""
        own = {name for name in environment if name.startswith("PYTHON")} - _PASSED_ON
        return bool(own) or environment["PYTHONPATH"] != str(ROOT / "src")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "perdure.cli.main", *arguments]


def address_of(process: subprocess.Popen[str]) -> str:
    """The URL that a starting server prints first."""
    assert process.stdout is not None
    return address_in(process.stdout.readline())


def address_in(line: str) -> str:
    assert "listening on" in line, line
    return line.rsplit(maxsplit=1)[-1]


@contextmanager
def terminal() -> Generator[tuple[int, int]]:
    """The two ends of a terminal: ours and the program's."""
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def shown_until(terminal: int, text: str) -> str:
    """What appears on a terminal up to `text`."""
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], PATIENCE_SECONDS)
        assert ready, f"{text!r} was not shown: {shown!r}"
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
