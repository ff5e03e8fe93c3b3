"""Runs many commands in one real shell, and says which programs they started and files they wrote.

A command finds nothing but programs that note their words, and a few real ones that start others.
Each runs in a subshell with a directory of its own, in which there is only a program. One shell
runs a whole batch, because starting shells would take most of the time.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perdure.core.shell.word import Word, render_words

NOTED: Final = ("a", "b", "canary", "x", "y", "can", "f")
NEAR: Final = "canary"
"""The program that is also in the directory of each command."""
REAL: Final = ("bash", "env", "nice", "nohup", "setsid", "sh", "stdbuf", "timeout", "xargs", "find")
LAUNCHER: Final = "launch"
"""A program that is not known, and runs its arguments."""
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
        self._programs.mkdir(parents=True)
        self._note = f'#!/bin/sh\nprintf "%s\\0" "$PWD" "$0" "$@" "{END}" >> {self._log}\n'
        for name in NOTED:
            self._make_program(self._programs / name)
        launcher = self._programs / LAUNCHER
        launcher.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n')
        launcher.chmod(0o755)
        for name in REAL:
            if real := shutil.which(name):
                (self._programs / name).symlink_to(real)
        self._programs.chmod(0o555)

    def run(self, commands: Sequence[str]) -> list[Done]:
        """What each of the commands did; the shell must get to the end of the batch."""
        self._log.write_bytes(b"")
        self._directories.mkdir()
        inner = f'cd "{self._directories}/$1"; ulimit -t 2; eval "$2"'
        lines = ["exec 8>&1", f"run() {{ ( {inner} ) < /dev/null > /dev/null 2>&1; }}"]
        for number, command in enumerate(commands):
            (self._directories / str(number)).mkdir()
            self._make_program(self._directories / str(number) / NEAR)
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

    def _make_program(self, path: Path) -> None:
        path.write_text(self._note)
        path.chmod(0o755)

    def _collect_programs(self, done: list[Done]) -> None:
        records = self._log.read_text(errors="replace").split(f"\0{END}\0")[:-1]
        for record in records:
            directory, program, *arguments = record.split("\0")
            number = Path(directory).relative_to(self._directories).parts[0]
            # `exec` of bash makes an absolute path of the program's.
            near = program.replace(f"{self._directories}/{number}/", "./", 1)
            name = near.removeprefix(f"{self._programs}/")
            words = [Word(word, word) for word in (name, *arguments)]
            done[int(number)].programs.add(render_words(words))

    def _collect_files(self, done: list[Done]) -> None:
        for number, command in enumerate(done):
            root = self._directories / str(number)
            for directory, _, names in os.walk(root):
                paths = (os.path.relpath(Path(directory, name), root) for name in names)
                command.files.update(path for path in paths if self._is_written(root, path))

    def _is_written(self, root: Path, path: str) -> bool:
        return path != NEAR or (root / path).read_text(errors="replace") != self._note
