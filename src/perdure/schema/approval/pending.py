"""What waits for a person, and the person's word on its way to the process where it is waited for.

A word travels through the store when it was said to another process than the one that asked.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.approval.permission import PermissionRequest, Reply
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.codec import Record

PendingKind = Literal["permission", "question"]
PendingRequest = PermissionRequest | QuestionRequest


class PermissionWord(Record, tag_field="type", tag="permission"):
    reply: Reply
    message: str | UnsetType = UNSET


class AnswersGiven(Record, tag_field="type", tag="answers"):
    answers: Answers


class AnswersRefused(Record, tag_field="type", tag="refused"):
    pass


PendingWord = PermissionWord | AnswersGiven | AnswersRefused


class LeftWord(Record):
    """As it lies in the store."""

    word: PendingWord
