"""What a crash left for a person to decide, as clients see it."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record

WaitReason = Literal["unclear", "deaths"]
"""`unclear`: a request may have reached the provider, and nothing came back. `deaths`: processes
died in the run, one after the other."""
Decision = Literal["retry", "abandon"]


class RecoveryInfo(Record):
    """Whether a Session waits for a decision, and why."""

    waiting: bool
    reason: WaitReason | UnsetType = UNSET
    message: str | UnsetType = UNSET
    deaths: int | UnsetType = UNSET
