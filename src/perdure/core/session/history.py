"""Session History: the projected messages that a Provider Turn is built from.

Two cuts apply: messages before the latest compaction are left out, and system messages at or before
the epoch's baseline are part of that baseline. While a new baseline is blocked, system messages
newer than the old one stay visible even if older than the compaction.
"""

from perdure.schema.ids import Seq
from perdure.schema.value import Value


class Cut(Value):
    """Where Session History begins: the latest compaction, and the epoch's baseline."""

    compaction: Seq | None
    baseline: Seq | None

    def shows(self, *, seq: Seq, type: str) -> bool:
        """Whether a message of this type, created at `seq`, is part of Session History."""
        return visible(
            seq=seq,
            is_system=type == "system",
            compaction=self.compaction,
            baseline=self.baseline,
        )


def visible(*, seq: Seq, is_system: bool, compaction: Seq | None, baseline: Seq | None) -> bool:
    """Whether a message with this sequence is part of Session History."""
    after_baseline = baseline is None or seq > baseline
    if is_system and not after_baseline:
        return False
    if compaction is None or seq >= compaction:
        return True
    return is_system and baseline is not None and after_baseline
