"""The activity of a Session, as the live event `session.status` tells it."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record
from perdure.schema.session.recovery import WaitReason


class SessionIdle(Record, tag_field="type", tag="idle"):
    """Nothing runs. The fields are extensions: why, if the last run did not end by itself."""

    outcome: Literal["failed", "waiting"] | UnsetType = UNSET
    """`failed` outside of any step, or `waiting` for a person to decide about a request."""
    reason: WaitReason | UnsetType = UNSET
    message: str | UnsetType = UNSET


class SessionBusy(Record, tag_field="type", tag="busy"):
    pass


class SessionRetrying(Record, tag_field="type", tag="retry"):
    """A request waits: after a failure, or with `attempt` 0 for the limits of its provider."""

    attempt: int
    message: str
    next: int
    """When it is sent, in milliseconds since the epoch."""


SessionStatus = SessionIdle | SessionBusy | SessionRetrying
