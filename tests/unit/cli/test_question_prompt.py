"""What a person types in answer to a question, and what it means."""

import pytest

from perdure.cli import question_prompt
from perdure.schema.approval.question import Question, QuestionOption

OPTIONS = (QuestionOption("red", "warm"), QuestionOption("blue", "cold"))
ONE = Question("Which?", "One", OPTIONS)
MANY = Question("Which?", "Many", OPTIONS, multiple=True)
STRICT = Question("Which?", "Strict", OPTIONS, custom=False)


@pytest.mark.parametrize(
    ("question", "typed", "labels"),
    [
        (ONE, "2", ("blue",)),
        (ONE, "red", ("red",)),
        (ONE, "green, or grey", ("green, or grey",)),
        (ONE, "3", ("3",)),
        (ONE, "\u0662", ("\u0662",)),
        (MANY, "1, 2", ("red", "blue")),
        (MANY, "2,2,blue", ("blue",)),
        (MANY, "1,green", ("red", "green")),
        (MANY, ",", None),
        (STRICT, "1", ("red",)),
        (STRICT, "blue", ("blue",)),
        (STRICT, "3", None),
        (STRICT, "green", None),
    ],
)
def test_options_are_chosen_by_number_or_in_words(
    question: Question, typed: str, labels: tuple[str, ...] | None
) -> None:
    assert question_prompt.parse_answer(question, typed) == labels
