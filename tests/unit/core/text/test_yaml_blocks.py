"""Block texts of front matter are those of YAML: tabs, trailing blanks, indentation, line ends."""

from importlib import import_module
from typing import Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from perdure.core.text import yaml
from perdure.schema.codec import JsonValue

_BODIES: Final = ("a", "b c", "# d", "e:  f", "- g", "a\tb", "a  ", "a\t", "'", "[")


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A key with a block text, perhaps followed by a comment and another key."""
    indicator = draw(st.sampled_from(["", "", "1", "2", "3"]))
    chomp = draw(st.sampled_from(["", "-", "+"]))
    marks = draw(st.sampled_from([indicator + chomp, chomp + indicator]))
    margin = int(indicator) if indicator else draw(st.integers(1, 3))
    blank = st.integers(0, 5).map(lambda width: " " * width)
    content = st.tuples(
        st.just(" " * margin),
        st.sampled_from(["", "", " ", "  ", "\t"]),
        st.sampled_from(_BODIES),
        st.sampled_from(["", "", " ", "\t", " \t "]),
    ).map("".join)
    lines = draw(st.lists(st.one_of(blank, content, content), max_size=6))
    rest = draw(st.sampled_from(["", "k: 1\n", "# c\nk: 1\n", " # c\nk: 1\n"]))
    style = draw(st.sampled_from("|>"))
    text = f"x: {style}{marks}\n" + "".join(f"{line}\n" for line in lines) + rest
    return text if rest or draw(st.booleans()) else text[:-1]


def has_too_wide_beginning(text: str) -> bool:
    """YAML forbids more blanks in an empty first line than in the first line with text."""
    blanks = 0
    for line in text.split("\n")[1:]:
        if line.strip(" "):
            return len(line) - len(line.lstrip(" ")) < blanks
        blanks = max(blanks, len(line))
    return False


@settings(max_examples=300, deadline=None)
@given(text=documents())
def test_a_block_text_is_what_yaml_makes_of_it(text: str) -> None:
    reference = import_module("yaml")
    assume(not has_too_wide_beginning(text))
    try:
        expected: JsonValue = reference.safe_load(text)
    except reference.YAMLError:
        assume(False)
    else:
        assert yaml.read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("|\n  a\t\n  b  \n", "a\t\nb  \n"),
        ("|\n  \ta\n  b\n", "\ta\nb\n"),
        ("|\n  a\n    \n  b\n", "a\n  \nb\n"),
        (">\n  a\n  \tb\n  c\n", "a\n\tb\nc\n"),
        ("|2\n    a\n   b\n", "  a\n b\n"),
        ("|-\n  a  \n\n", "a  "),
        ("|+\n  a\n\n  \n", "a\n\n\n"),
        ("|+\n\n\n", "\n\n"),
        ("|\n", ""),
        # YAML forbids tabs as indentation; here they count as four columns.
        ("|\n\ta\n\t\tb\n", "a\n    b\n"),
    ],
)
def test_blanks_and_tabs_of_a_block_text_are_kept(text: str, expected: str) -> None:
    assert yaml.read(f"x: {text}") == {"x": expected}
