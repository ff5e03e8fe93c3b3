"""What is asked for a title, and what of an answer becomes one."""

import pytest

from perdure.core import limits
from perdure.core.session import title
from perdure.llm.demo import title as demo_title


@pytest.mark.parametrize(
    ("answer", "made"),
    [
        ("Fix the login", "Fix the login"),
        ('  "Fix the login."\n', "Fix the login"),
        ("Title: **Fix the login**", "Fix the login"),
        ("# Fix the login\n\nIt is about logins.", "Fix the login"),
        ("<think>What could\nit be?</think>\nFix the login", "Fix the login"),
        ("<think>never ends", ""),
        ("„Anmeldung reparieren“", "Anmeldung reparieren"),
        ("Fix\x1b[2J the\tlogin", "Fix [2J the login"),
        ("", ""),
        ("...\n---", "---"),
    ],
)
def test_one_line_of_an_answer_is_the_title(answer: str, made: str) -> None:
    assert title.from_answer(answer) == made


def test_a_title_is_never_longer_than_titles_are() -> None:
    assert len(title.from_answer("word " * 10_000)) <= limits.TITLE_CHARS_MAX


def test_only_the_beginning_of_a_prompt_is_sent() -> None:
    assert len(title.request_text("x" * 1_000_000)) < limits.TITLE_PROMPT_CHARS_MAX + 100


def test_the_demo_knows_when_it_is_asked_for_one() -> None:
    asked = title.request_text("please fix the login page of our shop today")
    assert demo_title.is_asked(asked)
    assert demo_title.title_of(asked) == "Demo: please fix the login page of"
    assert not demo_title.is_asked("please fix the login page")
