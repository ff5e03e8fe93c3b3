"""Recovery decisions after a crash, as clients see them."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record

WaitReason = Literal["unclear", "deaths"]
"""`unclear`: a request may have reached the provider, and no answer came. `deaths`: several
processes died during the run."""
Decision = Literal["retry", "abandon"]


class RecoveryInfo(Record):
    """Whether a Session waits for a decision, and why."""

    waiting: bool
    reason: WaitReason | UnsetType = UNSET
    message: str | UnsetType = UNSET
    deaths: int | UnsetType = UNSET
