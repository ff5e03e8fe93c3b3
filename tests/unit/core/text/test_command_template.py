"""Templates of slash commands: what stands for arguments and outputs, and what is only text."""

import pytest

from perdure.core.text.command_template import ShellPart, fill, split_arguments


@pytest.mark.parametrize(
    ("template", "arguments", "filled"),
    [
        ("Say hello to $ARGUMENTS", "bob", "Say hello to bob"),
        ("$1 and $2", "a b", "a and b"),
        ("$1 and $2", "a b c d", "a and b c d"),
        ("$1 and $2", "'a b' \"c d\"", "a b and c d"),
        ("$1-$3", "a", "a-"),
        ("$2", "", ""),
        ("No place.", "words", "No place.\n\nwords"),
        ("No place.", "  ", "No place."),
        ("$ARGUMENTS", "$1 $ARGUMENTS !`id`", "$1 $ARGUMENTS !`id`"),
        ("$1", "!`id`", "!`id`"),
        ("costs $10", "x", "costs $10\n\nx"),
        ("$0 $ARGUMENTSX", "a", "$0 aX"),
        ("line `code` !``", "", "line `code` !``"),
    ],
)
def test_arguments_are_put_in_once(template: str, arguments: str, filled: str) -> None:
    assert "".join(map(str, fill(template, arguments))) == filled


def test_a_command_of_the_template_is_left_as_it_is_written() -> None:
    parts = fill("Log:\n!`git log -$1`\nfor $ARGUMENTS", "3; rm -rf /")
    assert parts == ("Log:\n", ShellPart("git log -$1"), "\nfor ", "3; rm -rf /")


def test_quotes_hold_an_argument_together() -> None:
    assert split_arguments("a 'b c' \"d e\" f'g") == ("a", "b c", "d e", "f'g")
    assert split_arguments("''") == ("",)
