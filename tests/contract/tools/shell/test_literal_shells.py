"""The reading of commands against real shells: none does more than its reading says.

Drawn commands that the review calls clear are given to bash and dash. Each program that is started,
with its exact words, and each file that is written must be a part that the review has shown. A
program that a rule denies must not run in any of those that the rules allow.
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

from perdure.core.approval import rules as permission
from perdure.core.shell.command import CommandDirectory, Review, review
from perdure.schema.approval.permission import Rule
from perdure.tools.builtin.bash_approval import resource_parts
from perdure.tools.shell.parser import parse_script
from tests.contract.tools.shell.drawn_commands import DrawnCommands
from tests.contract.tools.shell.hostile_commands import HOSTILE
from tests.contract.tools.shell.shell_stage import LAUNCHER, Done, ShellStage
from tests.figures import Figure
from tests.skipping import cannot_run

SEED: Final = int(os.environ.get("PERDURE_SEED", "0"))
SHARES: Final = 4
"""Tests among which the commands are divided, so that they run at the same time."""
TEXTS: Final = int(os.environ.get("PERDURE_TEXTS", "20000")) // SHARES
BATCH: Final = 500
SHELLS: Final = ("bash", "dash")
PLACE: Final = CommandDirectory(root="/project", directory="/project")
ELSEWHERE: Final = re.compile(r"(?<![\w.])/(?!dev/null\b)|\.\.|~")
"""Paths that lead out of the directory in which a command runs."""
SCRIPT: Final = re.compile(r"(?:bash|sh) (?:-[elux]+ )*")
ALL_BUT_CANARY: Final = (Rule("bash", "*", "allow"), Rule("bash", "canary *", "deny"))


def read(text: str) -> Review:
    return review(text, parse=partial(parse_script, "bash"), place=PLACE)


def is_allowed(text: str, found: Review) -> bool:
    """Whether it runs unasked where everything is allowed except `canary`."""
    parts = resource_parts(found)
    decision = permission.decide(ALL_BUT_CANARY, (), action="bash", resources=(text,), parts=parts)
    return decision.effect == "allow"


def excess(found: Review, done: Done) -> list[str]:
    """What was done and not shown."""
    shown = {part.text for part in found.parts}
    # A shell looks for a script where it looks for programs, and runs what it finds.
    scripts = {SCRIPT.sub("", text, count=1) for text in shown}
    files = {normpath(shlex.split(text[2:])[0]) for text in shown if text.startswith("> ")}
    hidden = {f"> {file}" for file in done.files - files}
    return sorted((done.programs - shown - scripts) | hidden)


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
    return ShellStage(root / name, shell)


@pytest.mark.parametrize("share", range(SHARES))
def test_no_command_hides_what_it_does_from_its_reading(
    tmp_path: Path, share: int, figure: Figure
) -> None:
    stages = [stage_for(tmp_path, name) for name in SHELLS]
    hidden: dict[str, list[str]] = {}
    clear = did = allowed = 0
    commands = clear_commands(SEED * SHARES + share)
    while batch := list(islice(commands, BATCH)):
        texts = [text for text, _ in batch]
        for (text, found), *all_done in zip(
            batch, *(stage.run(texts) for stage in stages), strict=True
        ):
            clear += 1
            passes = is_allowed(text, found)
            allowed += passes
            for done in all_done:
                did += bool(done.programs or done.files)
                denied = [program for program in done.programs if "canary" in program.split()[0]]
                launches = any(LAUNCHER in part.text for part in found.parts)
                more = [] if launches else excess(found, done)
                if more or (passes and denied):
                    hidden[text] = [*more, *denied]
    assert hidden == {}
    # The search is worth something only if many commands are clear and do something.
    assert clear > TEXTS // 20
    assert allowed > clear // 3
    assert did > clear * len(SHELLS) // 3
    figure("drawn commands", TEXTS)
    figure("drawn commands that were run", clear * len(SHELLS))


@pytest.mark.parametrize("name", SHELLS)
def test_the_search_would_see_what_is_hidden(tmp_path: Path, name: str) -> None:
    commands = (
        *("eval 'can''ary'", "a > f", "a & canary x &", "nice env canary", "a; 'b' 'y z'"),
        *("./canary x", "cd .; env -i ./canary", ": > canary", "printf a >> canary"),
    )
    found = [excess(Review(parts=()), done) for done in stage_for(tmp_path, name).run(commands)]
    assert found == [
        *(["canary"], ["> f", "a"], ["a", "canary x"], ["canary"], ["a", "b 'y z'"]),
        *(["./canary x"], ["./canary"], ["> canary"], ["> canary"]),
    ]


def test_most_hostile_examples_do_what_they_hide(tmp_path: Path) -> None:
    done = stage_for(tmp_path, "bash").run(HOSTILE)
    alive = [text for text, did in zip(HOSTILE, done, strict=True) if did.programs]
    assert len(alive) > len(HOSTILE) * 0.4
    unread = [text for text in alive if read(text).unclear is not None]
    assert len(unread) > len(alive) // 2
