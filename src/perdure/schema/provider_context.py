"""Everything a model was told, as it was told: for whoever wants to look. No secrets, no tools."""

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.ids import Seq
from perdure.schema.message import SessionMessage


class ProviderContext(Record):
    """The baseline of the current Context Epoch and the Session History after it.

    Before the first turn there is no epoch, and nothing has been told.
    """

    sources: tuple[str, ...]
    """Keys of the Context Sources that were admitted."""
    messages: tuple[SessionMessage, ...]
    baseline: str | UnsetType = UNSET
    """The exact text."""
    baseline_seq: Seq | UnsetType = UNSET
