"""The grammar against real shells: no text makes one run what the review does not show.

Texts are put together from pieces that are hard to read. Each that the review finds clear, without
our program in it, is given to a shell that can find nothing but that program and two idle ones.
"""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from perdure.core.shell.command import CommandDirectory, Review, review
from perdure.tools.shell.grammar import parse
from tests.figures import Figure
from tests.skipping import cannot_run

SEED: Final = int(os.environ.get("PERDURE_SEED", "0"))
TEXTS: Final = int(os.environ.get("PERDURE_TEXTS", "6000"))
CANARY: Final = "canary"
WRITES_ELSEWHERE: Final = re.compile(r">\S*\s*\S*/")
PIECES: Final = (
    *("canary x", "canary", "can", "ary", "a ", "b", "f", "x=", "$x", "\\\n", "\n", " ", " ", "\t"),
    *("; ", " | ", " && ", " & ", "|&", "$(", ")", "(", "`", "'", '"', "\\", "{ ", "}", "$'", "#"),
    *(
        "<<E\n",
        "\nE\n",
        "<<-E\n\t",
        "<<'E'\n",
        "<<<",
        "<(",
        ">(",
        "> f ",
        "2>&1 ",
        ">|",
        "<>",
        "&>",
    ),
    *("bash -c '", "sh -c ", "-c ", "-- ", "eval ", "trap '", " EXIT", "env ", "command ", "exec "),
    *("time ", "! ", "coproc ", "if a; then ", "; fi", "for x in a; do ", "; done", "while a; do "),
    *("break; done", "case a in a) ", ";; esac", "f() ", "function g ", "((", "))", "$((", "[[ "),
    *("]] ", "[", "]", "*", "?", "~", "@", "=", "/", "${x:-", "${", "$", "${x#", "{a,b}", "\r"),
)


@pytest.mark.parametrize("name", ["bash", "dash"])
def test_no_text_hides_a_command_from_the_review(tmp_path: Path, name: str, figure: Figure) -> None:
    shell = shutil.which(name)
    if shell is None:
        cannot_run(f"{name} is not installed")
    stage = Stage(tmp_path, shell)
    draw = random.Random(SEED)
    hidden = [
        text
        for text in ("".join(draw.choices(PIECES, k=draw.randint(2, 9))) for _ in range(TEXTS))
        if stage.hides(text)
    ]
    assert hidden == []
    figure("shell texts", TEXTS)


def test_the_search_would_see_a_hidden_command(tmp_path: Path) -> None:
    assert Stage(tmp_path, "/bin/sh").runs("eval 'can''ary'")


class Stage:
    def __init__(self, root: Path, shell: str) -> None:
        self._shell = shell
        self._ran = root / "ran"
        self._programs = root / "programs"
        self._directory = root / "directory"
        self._directory.mkdir()
        self._programs.mkdir()
        for name, body in ((CANARY, f"echo > {self._ran}"), ("a", ":"), ("b", ":")):
            program = self._programs / name
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(0o755)

    def hides(self, text: str) -> bool:
        """Whether the text is said to be clear and runs the program without showing it."""
        place = CommandDirectory(root=str(self._directory), directory=str(self._directory))
        found = review(text, parse=parse, place=place)
        if found.unclear is not None or shows(found) or not could_run(text):
            return False
        return self.runs(text)

    def runs(self, text: str) -> bool:
        self._ran.unlink(missing_ok=True)
        # Whatever loops, and whatever it leaves behind, is ended by its share of the processor.
        limited = 'ulimit -t 1; exec "$0" -c "$1"'
        subprocess.run(
            [self._shell, "-c", limited, self._shell, text],
            env={"PATH": str(self._programs)},
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
        return self._ran.exists()


def shows(found: Review) -> bool:
    return any(part.text.startswith(CANARY) for part in found.parts)


def could_run(text: str) -> bool:
    """And leaves no file anywhere but where it runs."""
    for mark in ("\\\n", "'", '"', "\\"):
        text = text.replace(mark, "")
    return CANARY in text and not WRITES_ELSEWHERE.search(text)
