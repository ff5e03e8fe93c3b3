"""Whether answers fit the questions they were given to.

One list for each question, in order. A list holds labels of the options, one unless the question
takes many, and words of the person's own unless it takes none. An empty list is no answer, and is
allowed: a person may leave a question open.
"""

from perdure.core import limits
from perdure.schema.approval.question import Answers, Question
from perdure.schema.errors import InvalidRequestError


def check_answers(questions: tuple[Question, ...], given: Answers) -> None:
    """Raise InvalidRequestError that says which answer does not fit, and why."""
    if len(given) != len(questions):
        raise _refused(f"Expected {len(questions)} lists of answers, got {len(given)}", at="")
    size = sum(len(label.encode()) for labels in given for label in labels)
    if size > limits.QUESTION_ANSWERS_BYTES_MAX:
        most = limits.QUESTION_ANSWERS_BYTES_MAX
        raise _refused(f"Answers are larger than {most} bytes", at="")
    for index, (question, labels) in enumerate(zip(questions, given, strict=True)):
        if reason := _find_fault(question, labels):
            raise _refused(reason, at=f"[{index}]")


def _find_fault(question: Question, labels: tuple[str, ...]) -> str | None:
    if len(labels) > 1 and not question.takes_many:
        return f"Expected one answer, got {len(labels)}"
    if len(set(labels)) < len(labels):
        return "Each answer can be given once"
    if not all(label.strip() for label in labels):
        return "An answer cannot be blank"
    offered = {option.label for option in question.options}
    if not question.takes_own_words and not offered.issuperset(labels):
        return "Expected labels among the options of the question"
    return None


def _refused(reason: str, *, at: str) -> InvalidRequestError:
    return InvalidRequestError(f'{reason}\n  at ["answers"]{at}', kind="Payload")
