"""Defects in the reading of commands that the searches with real shells must find."""

from dataclasses import dataclass
from typing import Final

from tests.harness.planting.defect import Defect
from tests.harness.planting.edit import Before, Instead


@dataclass(frozen=True, slots=True, kw_only=True)
class MisreadBug(Defect):
    search: str
    """The module of the search that finds it."""
    texts: int
    """How many commands are drawn."""


MISREAD_BUGS: Final = (
    MisreadBug(
        name="a quoted word with escapes is taken for a literal one",
        symbol="core.shell.literal:_word",
        edit=Before(
            "found = re.compile(r\"\\$'([^']*)'(?=\\s)\").match(reading.text, reading.at)\n"
            "if found:\n"
            "    reading.at = found.end()\n"
            "    return Word(found[0], found[1])"
        ),
        search="test_literal_shells",
        texts=3_000,
    ),
    MisreadBug(
        name="a word that begins a compound command is taken for a program",
        symbol="core.shell.literal:_add_word",
        edit=Instead("reading.begun = True\nreading.words.append(word)"),
        search="test_literal_shells",
        texts=3_000,
    ),
    MisreadBug(
        name="a program that starts another is not looked through",
        symbol="core.shell.wrapper:unwrap",
        edit=Instead("return Unwrapped()"),
        search="test_literal_shells",
        texts=2_000,
    ),
    MisreadBug(
        name="a built-in that evaluates its words again counts as a program",
        symbol="core.shell.builtin:unclear_builtin",
        edit=Instead("return None"),
        search="test_literal_shells",
        texts=3_000,
    ),
    MisreadBug(
        name="what a program may run is not compared with the rules",
        symbol="core.approval.rules:_find_suspicion",
        edit=Instead("return None"),
        search="test_literal_shells",
        texts=3_000,
    ),
    MisreadBug(
        name="a prefix is saved for a program with options that write",
        symbol="core.shell.harmless_program:_is_harmless",
        edit=Instead("return True"),
        search="test_harmless_programs",
        texts=6_000,
    ),
    MisreadBug(
        name="an abbreviated option counts as one of the table",
        symbol="core.shell.harmless_program:_taken_by_long",
        edit=Instead("return 1"),
        search="test_harmless_programs",
        texts=10_000,
    ),
)
