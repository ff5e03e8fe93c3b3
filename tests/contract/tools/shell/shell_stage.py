"""Runs many commands in one real shell, and says which programs they started and files they wrote.

A command finds nothing but programs that note their words, and a few real ones that start others.
Each runs in a subshell with an empty directory of its own. One shell runs a whole batch, because
starting shells would take most of the time.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perdure.core.shell.word import Word, render_words

NOTED: Final = ("a", "b", "canary", "x", "y", "can", "f")
REAL: Final = ("bash", "env", "nice", "nohup", "sh", "timeout")
END: Final = "\x1e"
BATCH_SECONDS_MAX: Final = 120


class Done:
    """What one command did."""

    def __init__(self) -> None:
        self.programs: set[str] = set()
        self.files: set[str] = set()


class ShellStage:
    def __init__(self, root: Path, shell: str) -> None:
        self._shell = shell
        self._log = root / "log"
        self._directories = root / "directories"
        self._programs = root / "programs"
        self._programs.mkdir()
        for name in NOTED:
            program = self._programs / name
            program.write_text(
                f'#!/bin/sh\nprintf "%s\\0" "$N" "${{0##*/}}" "$@" "{END}" >> {self._log}\n'
            )
            program.chmod(0o755)
        for name in REAL:
            if real := shutil.which(name):
                (self._programs / name).symlink_to(real)
        self._programs.chmod(0o555)

    def run(self, commands: Sequence[str]) -> list[Done]:
        """What each of the commands did; the shell must get to the end of the batch."""
        self._log.write_bytes(b"")
        self._directories.mkdir()
        inner = f'cd "{self._directories}/$1"; export N="$1"; ulimit -t 2; eval "$2"'
        lines = ["exec 8>&1", f"run() {{ ( {inner} ) < /dev/null > /dev/null 2>&1; }}"]
        for number, command in enumerate(commands):
            (self._directories / str(number)).mkdir()
            quoted = command.replace("'", "'\\''")
            lines.append(f"run {number} '{quoted}'")
        script = self._log.with_name("script")
        script.write_text("\n".join((*lines, "echo finished\n")))
        # What a command left running holds descriptor 8, so all of it has ended afterwards.
        child = subprocess.run(
            [self._shell, str(script)],
            env={"PATH": str(self._programs), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BATCH_SECONDS_MAX,
            check=False,
        )
        assert child.stdout == b"finished\n", child.stderr[-500:]
        done = [Done() for _ in commands]
        self._collect_programs(done)
        self._collect_files(done)
        shutil.rmtree(self._directories)
        return done

    def _collect_programs(self, done: list[Done]) -> None:
        records = self._log.read_text(errors="replace").split(f"\0{END}\0")[:-1]
        for record in records:
            number, *words = record.split("\0")
            done[int(number)].programs.add(render_words([Word(word, word) for word in words]))

    def _collect_files(self, done: list[Done]) -> None:
        for number, command in enumerate(done):
            root = self._directories / str(number)
            for directory, _, names in os.walk(root):
                paths = (os.path.relpath(Path(directory, name), root) for name in names)
                command.files.update(paths)
