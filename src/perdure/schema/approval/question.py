"""What a model asks a person: questions with options, and the answers in their order."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, QuestionID, SessionID, ToolCallID


class QuestionOption(Record):
    label: str
    description: str


class Question(Record):
    """Takes one label unless `multiple`, and words of the person's own unless `custom` is false."""

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
    """The tool call that wants to know."""

    message_id: MessageID
    call_id: ToolCallID


class QuestionRequest(Record):
    id: QuestionID
    session_id: SessionID
    questions: tuple[Question, ...]
    tool: QuestionSource | UnsetType = UNSET


Answers = tuple[tuple[str, ...], ...]
"""One list of labels for each question, in the order of the questions; empty is unanswered."""
