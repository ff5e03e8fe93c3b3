"""What "always" covers against the real programs: they write no file and start no program.

Each harmless program was approved with "always" in its plain form. Commands of these programs are
drawn; those that run unasked then are run in a repository that must stay as it is.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from perdure.core.approval import rules as permission
from perdure.core.shell.command import CommandDirectory, review
from perdure.core.shell.harmless_program import HARMLESS
from perdure.core.shell.word import Word, render_words
from perdure.tools.builtin.bash_approval import resource_parts
from perdure.tools.shell.parser import parse_script
from tests.contract.tools.shell.drawn_arguments import DrawnArguments
from tests.figures import Figure
from tests.skipping import cannot_run

SEED: Final = int(os.environ.get("PERDURE_SEED", "0"))
COMMANDS: Final = int(os.environ.get("PERDURE_TEXTS", "20000")) // 10
BATCH: Final = 100
PLACE: Final = CommandDirectory(root="/project", directory="/project")
APPROVED: Final = permission.approvals(("bash", f"{name} *") for name in HARMLESS)
ENDLESS: Final = frozenset({"sleep", "tail"})
"""Programs that wait, and would hold up the search."""
INSTALLED: Final = tuple(
    name for name in HARMLESS if name.split()[0] not in ENDLESS and shutil.which(name.split()[0])
)


class Repository:
    """A repository, and what commands did to it."""

    def __init__(self, root: Path) -> None:
        self._root = root / "repository"
        self._programs = root / "programs"
        self._ran = root / "ran"
        self._programs.mkdir()
        canary = self._programs / "canary"
        canary.write_text(f'#!/bin/sh\necho "$0 $*" >> {self._ran}\n')
        canary.chmod(0o755)
        (self._root / "sub").mkdir(parents=True)
        for name, text in (("in", "a\nb\nb\n"), ("in2", '{"a": 1}\n'), ("sub/in3", "c\n")):
            (self._root / name).write_text(text)
        setup = "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm a"
        subprocess.run(["sh", "-c", f"{setup} && echo c >> in"], cwd=self._root, check=True)
        self._before = self._files()

    def changes(self, commands: Sequence[str]) -> list[str]:
        """What the commands wrote and started; the repository is as before afterwards."""
        script = "\n".join(f"( ulimit -t 5; {command} ) > /dev/null 2>&1" for command in commands)
        environment = {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "HOME": str(self._programs),
            **dict.fromkeys(("PAGER", "GIT_PAGER", "EDITOR", "VISUAL", "BROWSER"), "canary"),
        }
        subprocess.run(
            ["bash", "-c", f"{script}\ntrue"],
            cwd=self._root,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=True,
        )
        after = self._files()
        paths = {
            path for path in {*self._before, *after} if self._before.get(path) != after.get(path)
        }
        for path in paths:
            (self._root / path).unlink(missing_ok=True)
            if path in self._before:
                (self._root / path).write_bytes(self._before[path])
        ran = self._ran.read_text().splitlines() if self._ran.exists() else []
        self._ran.unlink(missing_ok=True)
        return sorted((*paths, *(line.rpartition("/")[2] for line in ran)))

    def _files(self) -> Mapping[str, bytes]:
        # `git status` writes what it learned about files into the index.
        found = (path for path in self._root.rglob("*") if path.is_file() and path.name != "index")
        return {path.relative_to(self._root).as_posix(): path.read_bytes() for path in found}


def runs_unasked(command: str) -> bool:
    found = review(command, parse=partial(parse_script, "bash"), place=PLACE)
    decision = permission.decide(
        (), APPROVED, action="bash", resources=(command,), parts=resource_parts(found)
    )
    return decision.effect == "allow"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if shutil.which("git") is None or shutil.which("bash") is None:
        cannot_run("git or bash is not installed")
    return Repository(tmp_path)


def test_what_always_covers_writes_and_starts_nothing(
    repository: Repository, figure: Figure
) -> None:
    draw = DrawnArguments(SEED, INSTALLED)
    drawn = [render_words([Word(word, word) for word in draw.next()]) for _ in range(COMMANDS)]
    unasked = [command for command in drawn if runs_unasked(command)]
    hidden: dict[str, list[str]] = {}
    for at in range(0, len(unasked), BATCH):
        batch = unasked[at : at + BATCH]
        if not hidden and repository.changes(batch):
            hidden |= {text: did for text in batch if (did := repository.changes([text]))}
    assert hidden == {}
    assert len(INSTALLED) > len(HARMLESS) // 2
    assert len(drawn) // 5 < len(unasked) < len(drawn) * 4 // 5
    figure("drawn commands of harmless programs", len(drawn))


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("sort -o f in", ["f"]),
        ("sort -no f in", ["f"]),
        ("sort in --outp=f", ["f"]),
        ("uniq in f", ["f"]),
        ("git diff --output=f", ["f"]),
        ("git diff -U --output=f", ["f"]),
        ("git grep -Ocanary b", ["canary in"]),
        ("git grep --open=canary b", ["canary in"]),
        ("git branch f", [".git/logs/refs/heads/f", ".git/refs/heads/f"]),
        ("git ls-remote --upload-pack=canary .", ["canary ."]),
    ],
)
def test_the_search_would_see_what_is_written_or_started(
    repository: Repository, command: str, changed: list[str]
) -> None:
    assert repository.changes([command]) == changed
    assert repository.changes(["true"]) == []
    assert not runs_unasked(command)
