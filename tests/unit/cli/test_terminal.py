"""What may be shown on a terminal: text, and nothing that acts on it."""

import io
import json
import logging
import unicodedata
from contextlib import redirect_stderr, redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli import terminal
from perdure.cli.terminal import Cleaner, LogFormatter, clean, one_line

ACTING = st.sampled_from(["\x1b", "[", "]", "P", "\\", "\x07", "\x9b", "\x9d", "\x9c", ";", "0"])
HOSTILE = st.lists(st.one_of(ACTING, st.text(max_size=5), st.just("\n"))).map("".join)


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain text\n\twith layout", "plain text\n\twith layout"),
        ("a\x1b[31mred\x1b[0mb", "aredb"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd"),
        ("a\x9b2Jb\x9d0;t\x9cc\x90q\x9cd", "abcd"),
        ("a\x1bcb", "ab"),
        ("a\x1b(0b\x1b(Bc", "abc"),
        ("a\x1b[\x1b[2Jb", "ab"),
        ("a\rb\x08c\x00d\x7fe\x85f", "abcdef"),
        ("user\u202egnp.exe\u2066x\u2069", "usergnp.exex"),
        ("\ud83d", ""),
        ("\u00e4\u6f22\U0001f600", "\u00e4\u6f22\U0001f600"),
        ("a\x1b]0;never ended\nb", "a\nb"),
        ("a\x1b", "a"),
        ("", ""),
    ],
)
def test_only_text_is_left(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


def acts(character: str) -> bool:
    """Whether a terminal does something with it, or reads on in another direction."""
    if character in "\n\t":
        return False
    turns = unicodedata.bidirectional(character) in {
        *("LRE", "RLE", "LRO", "RLO", "PDF"),
        *("LRI", "RLI", "FSI", "PDI"),
    }
    return turns or unicodedata.category(character) in {"Cc", "Cs"}


@given(HOSTILE | st.text(st.characters()))
def test_nothing_that_acts_is_ever_left(text: str) -> None:
    assert not any(map(acts, clean(text)))


def test_no_single_character_gets_through() -> None:
    assert not any(map(acts, "".join(clean(chr(number)) for number in range(0x3000))))


@given(HOSTILE)
def test_everything_that_is_said_or_logged_is_cleaned(text: str) -> None:
    said, noted = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(noted):
        terminal.print_output(text)
        terminal.print_note(text)
    assert said.getvalue() == noted.getvalue() == clean(text)
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "%s", (text,), None)
    assert LogFormatter("%(message)s").format(record) == clean(text)


@given(HOSTILE | st.text(st.characters(exclude_categories=["Cs"])))
def test_json_survives_being_said(text: str) -> None:
    written = terminal.as_json({"text": text})
    assert clean(written) == written
    assert json.loads(written) == {"text": text}


@given(HOSTILE, st.integers(min_value=1, max_value=4))
def test_pieces_are_cleaned_like_the_whole(text: str, size: int) -> None:
    cleaner = Cleaner()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert "".join(cleaner.feed(piece) for piece in pieces) == clean(text)


@given(HOSTILE)
def test_a_later_line_is_never_hidden_by_an_earlier_one(text: str) -> None:
    assert clean(text + "\nvisible").endswith("\nvisible")


def test_one_line_is_one_line_of_bearable_length() -> None:
    assert one_line("  a\n\tb \x1b[2Jc  ") == "a b c"
    assert len(one_line("x" * 10_000)) < 300
