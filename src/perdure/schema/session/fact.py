"""The common fields of the durable events of a Session after its creation."""

from perdure.schema.codec import Record
from perdure.schema.ids import SessionID


class Fact(Record):
    """The common fields of all later events: domain time and Session."""

    timestamp: int
    session_id: SessionID
