"""Questions of a model to a person: with options, and answers in the same order."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, QuestionID, SessionID, ToolCallID


class QuestionOption(Record):
    label: str
    description: str


class Question(Record):
    """A question with one answer unless `multiple`; free text unless `custom` is false."""

    question: str
    header: str
    options: tuple[QuestionOption, ...]
    multiple: bool | UnsetType = UNSET
    custom: bool | UnsetType = UNSET

    @property
    def takes_many(self) -> bool:
        return self.multiple is True

    @property
    def takes_own_words(self) -> bool:
        return self.custom is not False


class QuestionSource(Record):
    """The tool call that asks."""

    message_id: MessageID
    call_id: ToolCallID


class QuestionRequest(Record):
    id: QuestionID
    session_id: SessionID
    questions: tuple[Question, ...]
    tool: QuestionSource | UnsetType = UNSET


Answers = tuple[tuple[str, ...], ...]
"""One list of labels per question, in the order of the questions; empty means unanswered."""
