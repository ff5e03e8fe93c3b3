"""Which Sessions run or wait for a person, as a list of Sessions shows it."""

from msgspec import UNSET, UnsetType

from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.codec import Record
from perdure.schema.ids import SessionID
from perdure.schema.session.recovery import RecoveryInfo


class SessionAttention(Record):
    """A Session that runs, or waits for a person, or both."""

    session_id: SessionID
    running: bool
    permissions: tuple[PermissionRequest, ...]
    questions: tuple[QuestionRequest, ...]
    recovery: RecoveryInfo | UnsetType = UNSET
