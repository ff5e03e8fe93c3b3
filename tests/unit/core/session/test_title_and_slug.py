"""What a Session is called before anybody names it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.session import title


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("fix the build", "fix the build"),
        ("\n\n  fix\tthe   build  \nplease", "fix the build"),
        ("\x1b[31mred\x07", "[31mred"),
        ("a\u202eb", "a b"),
        ("   \n\t\n", ""),
        ("", ""),
    ],
)
def test_a_title_is_the_first_line_with_words(text: str, wanted: str) -> None:
    assert title.from_prompt(text) == wanted


def test_a_long_title_ends_at_a_word() -> None:
    made = title.from_prompt("word " * 40)
    assert made.endswith("word…")
    assert len(made) <= limits.TITLE_CHARS_MAX


def test_a_long_word_is_cut_where_it_must_be() -> None:
    assert title.from_prompt("x" * 500) == "x" * (limits.TITLE_CHARS_MAX - 1) + "…"


@pytest.mark.parametrize("text", ["x" * 16_000_000, "\n" * 16_000_000 + "late", " x" * 8_000_000])
@pytest.mark.timeout(5)
def test_a_title_is_made_of_a_huge_prompt_at_once(text: str) -> None:
    for _ in range(100):
        assert len(title.from_prompt(text)) <= limits.TITLE_CHARS_MAX


@given(st.text())
def test_no_title_has_control_characters(text: str) -> None:
    made = title.from_prompt(text)
    assert made.isprintable()
    assert len(made) <= limits.TITLE_CHARS_MAX


def test_a_placeholder_is_known_again_and_says_when() -> None:
    made = title.placeholder(1_700_000_000_007)
    assert made == "New session - 2023-11-14T22:13:20.007Z"
    assert title.is_placeholder(made)
    assert not title.is_placeholder("My session")


@given(st.text())
def test_a_slug_is_two_words_and_the_same_for_the_same_id(id: str) -> None:
    adjective, noun = title.make_slug(id).split("-")
    assert adjective.isalpha()
    assert noun.isalpha()
    assert title.make_slug(id) == title.make_slug(id)


def test_slugs_differ_between_sessions() -> None:
    assert len({title.make_slug(f"ses_{number}") for number in range(200)}) > 150
