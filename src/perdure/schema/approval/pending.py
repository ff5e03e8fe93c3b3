"""Pending requests, and replies on their way to the process that waits for them.

A reply given to another process than the one that asked travels through the store.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.approval.permission import PermissionRequest, Reply, Scope
from perdure.schema.approval.question import Answers, QuestionRequest
from perdure.schema.codec import Record
from perdure.schema.value import Value

PendingKind = Literal["permission", "question"]
PendingRequest = PermissionRequest | QuestionRequest


class PermissionWord(Record, tag_field="type", tag="permission"):
    reply: Reply
    message: str | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    """How far an `always` reaches; without it, the project."""
    seconds: int | UnsetType = UNSET
    """How long an `always` counts; without it, for ever."""


class AnswersGiven(Record, tag_field="type", tag="answers"):
    answers: Answers


class AnswersRefused(Record, tag_field="type", tag="refused"):
    pass


PendingWord = PermissionWord | AnswersGiven | AnswersRefused


class LeftWord(Record):
    """A reply as stored."""

    word: PendingWord


class StoredRequest(Value):
    """What an earlier process of a call left of its requests."""

    request: PendingRequest | None
    void: tuple[PendingRequest, ...] = ()
    """Requests from before the call changed: they showed something else."""
