"""A Session at one sequence, with everything a client needs to show it."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import Seq
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo


class EarlierMessages(Record):
    """A link to earlier messages: `previous` is a cursor for the list of messages."""

    previous: str | UnsetType = UNSET


class SessionSnapshot(Record):
    """The newest messages in chronological order. Follow the durable stream after `seq`."""

    session: SessionInfo
    messages: tuple[SessionMessage, ...]
    inbox: tuple[AdmittedPrompt, ...]
    seq: Seq
    cursor: EarlierMessages
