"""A Session as it is at one sequence, with everything a screen needs to show it."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import Seq
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo


class EarlierMessages(Record):
    """`previous` continues the list of messages, as a page of them does."""

    previous: str | UnsetType = UNSET


class SessionSnapshot(Record):
    """The newest messages, oldest of them first. Follow the durable stream after `seq`."""

    session: SessionInfo
    messages: tuple[SessionMessage, ...]
    inbox: tuple[AdmittedPrompt, ...]
    seq: Seq
    cursor: EarlierMessages
