"""Compaction: the older part of Session History becomes a summary, the newest part stays as text.

This decides what is condensed, what is kept, what is carried, and whether it was worth it;
runtime.compaction.compactor carries it out. Sizes are core.request.token_budget, the question to
the model is core.compaction.summary_request, the way out without a model is
core.compaction.fallback_summary.

Invariant: a message is condensed or kept whole. Nothing that was condensed before is dropped: the
previous summary and its recent text are part of what is condensed next.
"""

from typing import Final

from perdure.core import limits
from perdure.core.compaction import fallback_summary, preserved
from perdure.core.compaction.preserved import PreservedFacts
from perdure.core.request import token_budget
from perdure.schema.session.message import CompactionMessage, SessionMessage, UserMessage
from perdure.schema.session.todo import Todos
from perdure.schema.value import Value

_WRAPPING_TOKENS: Final = 120
"""Of a checkpoint: the words around what is in it."""


class Compacted(Value):
    """There is a new checkpoint; the next Provider Turn starts from it."""


class NothingToCompact(Value):
    pass


class CompactionFailed(Value):
    """Nothing has changed for the model. The reason is for the person who asked."""

    reason: str


CompactionOutcome = Compacted | NothingToCompact | CompactionFailed


class Shares(Value, kw_only=True):
    """How the room after a compaction is divided, in tokens."""

    summary: int = limits.SUMMARY_TOKENS_MAX
    recent: int = limits.COMPACTION_KEEP_TOKENS
    carried: int = limits.CARRIED_TOKENS_MAX


class Material(Value, kw_only=True):
    """What a compaction is made of."""

    history: tuple[SessionMessage, ...]
    """Session History from the latest checkpoint on."""
    prompts: tuple[UserMessage, ...] = ()
    """What the user ever said in the Session, as far as it is still looked at."""
    todos: Todos = ()


class CompactionPlan(Value, kw_only=True):
    """One compaction, but for its summary."""

    older: tuple[SessionMessage, ...]
    earlier: str
    """The recent text of the previous checkpoint, which is older now."""
    previous_summary: str
    recent: str
    carried: PreservedFacts
    summary_tokens: int

    def tokens_with(self, summary: str) -> int:
        """The size of the checkpoint."""
        said = token_budget.estimate(summary) + token_budget.estimate(self.recent)
        return said + self.carried.tokens + _WRAPPING_TOKENS

    def mechanical_summary(self, reason: str) -> str:
        before = "\n\n".join(text for text in (self.previous_summary, self.earlier) if text)
        return fallback_summary.summary(
            self.older, before, reason=reason, tokens_max=self.summary_tokens
        )


def divide_tokens(room: int | None, *, keep_tokens: int) -> Shares:
    """None: nobody knows how much room there is."""
    if room is None:
        return Shares(recent=keep_tokens)
    # A tenth is left over, for the error of our estimates.
    tenth = (max(room, limits.COMPACTION_ROOM_TOKENS_MIN) - _WRAPPING_TOKENS) // 10
    return Shares(
        summary=min(limits.SUMMARY_TOKENS_MAX, 3 * tenth),
        recent=min(keep_tokens, 4 * tenth),
        carried=min(limits.CARRIED_TOKENS_MAX, 2 * tenth),
    )


def plan(material: Material, within: Shares) -> CompactionPlan | None:
    """Divide Session History; None when there is nothing that a summary would shorten."""
    checkpoints = (m for m in reversed(material.history) if isinstance(m, CompactionMessage))
    previous = next(checkpoints, None)
    split = preserved.split(material.history, keep_tokens=within.recent)
    if not (split.older or split.recent) or (not split.older and previous is None):
        return None
    kept = {message.id for message in split.recent}
    said = [prompt.text for prompt in material.prompts if prompt.id not in kept]
    return CompactionPlan(
        older=split.older,
        earlier="" if previous is None else previous.recent,
        previous_summary="" if previous is None else previous.summary,
        recent=preserved.render(split.recent),
        carried=preserved.preserve_facts(
            said,
            material.todos,
            tokens_max=within.carried,
            # When the newest prompt is too large to stay, its beginning takes that place.
            latest_chars=None if split.recent else 2 * within.recent,
        ),
        summary_tokens=within.summary,
    )


def frees_enough(before: int, after: int) -> bool:
    """Whether an automatic compaction was worth it. Less would only come again at once."""
    return 100 * after <= limits.COMPACTED_PERCENT_MAX * before
