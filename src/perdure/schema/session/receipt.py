"""The receipt of an admission: the prompt is durable and will run, or fail visibly."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.prompt import Delivery, Prompt


class AdmittedPrompt(Record):
    """One entry of the inbox. `promoted_seq` is set once the prompt is part of history."""

    admitted_seq: Seq
    id: MessageID
    session_id: SessionID
    prompt: Prompt
    delivery: Delivery
    time_created: int
    promoted_seq: Seq | UnsetType = UNSET
