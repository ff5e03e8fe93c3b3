"""The reading of commands against real shells: none does more than its reading says.

Drawn commands that the review calls clear are given to bash and dash. Each program that is started,
with its exact words, and each file that is written must be a part that the review has shown.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from posixpath import normpath
from typing import Final

import pytest

from perdure.core.shell.command import CommandDirectory, Review, review
from perdure.tools.shell.parser import parse_script
from tests.contract.tools.shell.drawn_commands import HOSTILE, DrawnCommands
from tests.contract.tools.shell.shell_stage import Done, ShellStage
from tests.figures import Figure
from tests.skipping import cannot_run

SEED: Final = int(os.environ.get("PERDURE_SEED", "0"))
TEXTS: Final = int(os.environ.get("PERDURE_TEXTS", "20000"))
BATCH: Final = 500
PLACE: Final = CommandDirectory(root="/project", directory="/project")
ELSEWHERE: Final = re.compile(r"(?<![\w.])/(?!dev/null\b)|\.\.|~")
"""Paths that lead out of the directory in which a command runs."""


def read(text: str) -> Review:
    return review(text, parse=partial(parse_script, "bash"), place=PLACE)


def excess(found: Review, done: Done) -> list[str]:
    """What was done and not shown."""
    shown = {part.text for part in found.parts}
    files = {normpath(shlex.split(text[2:])[0]) for text in shown if text.startswith("> ")}
    return sorted((done.programs - shown) | {f"> {file}" for file in done.files - files})


def clear_commands(seed: int) -> Iterator[tuple[str, Review]]:
    draw = DrawnCommands(seed)
    for _ in range(TEXTS):
        text = draw.next()
        found = read(text)
        if found.unclear is None and not ELSEWHERE.search(text):
            yield text, found


def stage_for(root: Path, name: str) -> ShellStage:
    shell = shutil.which(name)
    if shell is None:
        cannot_run(f"{name} is not installed")
    return ShellStage(root, shell)


@pytest.mark.parametrize("name", ["bash", "dash"])
def test_no_command_hides_what_it_does_from_its_reading(
    tmp_path: Path, name: str, figure: Figure
) -> None:
    stage = stage_for(tmp_path, name)
    hidden: dict[str, list[str]] = {}
    clear = did = 0
    commands = clear_commands(SEED)
    while batch := list(islice(commands, BATCH)):
        for (text, found), done in zip(batch, stage.run([text for text, _ in batch]), strict=True):
            clear += 1
            did += bool(done.programs or done.files)
            if more := excess(found, done):
                hidden[text] = more
    assert hidden == {}
    # The search is worth something only if many commands are clear and do something.
    assert clear > TEXTS // 20
    assert did > clear // 3
    figure("drawn commands", TEXTS)
    figure("drawn commands that were run", clear)


@pytest.mark.parametrize("name", ["bash", "dash"])
def test_the_search_would_see_what_is_hidden(tmp_path: Path, name: str) -> None:
    commands = ("eval 'can''ary'", "a > f", "a & canary x &", "nice env canary", "a; 'b' 'y z'")
    found = [excess(Review(parts=()), done) for done in stage_for(tmp_path, name).run(commands)]
    assert found == [
        ["canary"],
        ["> f", "a"],
        ["a", "canary x"],
        ["canary"],
        ["a", "b 'y z'"],
    ]


def test_most_hostile_examples_do_what_they_hide(tmp_path: Path) -> None:
    done = stage_for(tmp_path, "bash").run(HOSTILE)
    alive = [text for text, did in zip(HOSTILE, done, strict=True) if did.programs]
    assert len(alive) > len(HOSTILE) * 0.8
    unread = [text for text in alive if read(text).unclear is not None]
    assert len(unread) > len(HOSTILE) * 0.6
