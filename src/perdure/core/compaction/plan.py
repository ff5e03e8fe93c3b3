"""Compaction plan: the older part of Session History becomes a summary, the newest stays as text.

This decides what is condensed, kept and carried over, and whether the result frees enough;
runtime.compaction.compactor carries it out. Sizes are core.request.token_budget, the request to
the model is core.compaction.summary_request, the summary without a model is
core.compaction.fallback_summary.

Invariant: a message is condensed or kept whole. Nothing that was condensed before is dropped: the
previous summary and its recent text are part of what is condensed next, unless the user excluded
that checkpoint.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core import limits
from perdure.core.compaction import fallback_summary, preserved
from perdure.core.compaction.preserved import PreservedFacts
from perdure.core.request import history_to_llm, media_limits, message_media, token_budget
from perdure.core.request.media_limits import MediaLimits
from perdure.core.session import omission
from perdure.llm.message import LLMMessage
from perdure.schema.ids import MessageID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.message import (
    AssistantMessage,
    CompactionMessage,
    SessionMessage,
    UserMessage,
)
from perdure.schema.session.todo import Todos
from perdure.schema.value import Value

_WRAPPING_TOKENS: Final = 120
"""Size of the fixed text of a checkpoint."""
_NAME_TOKENS: Final = 60
"""Upper estimate of the line that names media which are not sent."""


class Shares(Value, kw_only=True):
    """Token limits for the parts of a checkpoint."""

    summary: int = limits.SUMMARY_TOKENS_MAX
    recent: int = limits.COMPACTION_KEEP_TOKENS
    carried: int = limits.CARRIED_TOKENS_MAX


class Material(Value, kw_only=True):
    """The input of a compaction."""

    history: tuple[SessionMessage, ...]
    """Session History since the latest checkpoint, including it."""
    tokens: tuple[int, ...]
    """The size of each message of the history as the model is sent it."""
    prompts: tuple[UserMessage, ...] = ()
    """The newest prompts of the whole Session."""
    todos: Todos = ()

    @property
    def size(self) -> int:
        return sum(self.tokens)

    @property
    def largest(self) -> tuple[MessageID, int] | None:
        sized = zip(self.history, self.tokens, strict=True)
        found = max(sized, key=lambda pair: pair[1], default=None)
        return None if found is None else (found[0].id, found[1])

    def largest_input(self) -> tuple[MessageID, int] | None:
        """The largest of the messages that wait for an answer."""
        newest: list[tuple[MessageID, int]] = []
        for message, tokens in zip(reversed(self.history), reversed(self.tokens), strict=True):
            if isinstance(message, AssistantMessage | CompactionMessage):
                break
            newest.append((message.id, tokens))
        return max(newest, key=lambda pair: pair[1], default=None)


class CompactionPlan(Value, kw_only=True):
    """A compaction without its summary."""

    older: tuple[SessionMessage, ...]
    earlier: str
    """The recent text of the previous checkpoint, which is now condensed."""
    previous_summary: str
    recent: str
    carried: PreservedFacts
    summary_tokens: int

    def tokens_with(self, summary: str) -> int:
        """The size of the checkpoint with this summary."""
        tokens = token_budget.estimate(summary) + token_budget.estimate(self.recent)
        return tokens + self.carried.tokens + _WRAPPING_TOKENS

    def mechanical_summary(self, reason: str) -> str:
        before = "\n\n".join(text for text in (self.previous_summary, self.earlier) if text)
        return fallback_summary.summary(
            self.older, before, reason=reason, tokens_max=self.summary_tokens
        )


def measure(
    history: Sequence[SessionMessage], model: ModelRef, takes: MediaLimits | None = None
) -> tuple[int, ...]:
    """The size of each message as `model` is sent it; `takes`: which media it is sent at all."""
    return tuple(_tokens(history_to_llm.lower(message, model), takes) for message in history)


def divide_tokens(room: int | None, *, keep_tokens: int) -> Shares:
    """Divide the tokens available for a checkpoint; None if the window is unknown."""
    if room is None:
        return Shares(recent=keep_tokens)
    # One tenth stays unused, because sizes are estimates.
    tenth = (max(room, limits.COMPACTION_ROOM_TOKENS_MIN) - _WRAPPING_TOKENS) // 10
    return Shares(
        summary=min(limits.SUMMARY_TOKENS_MAX, 3 * tenth),
        recent=min(keep_tokens, 4 * tenth),
        carried=min(limits.CARRIED_TOKENS_MAX, 2 * tenth),
    )


def plan(material: Material, within: Shares) -> CompactionPlan | None:
    """Divide Session History; None if there is nothing to summarise."""
    previous = _previous_checkpoint(material.history)
    split = preserved.split(material.history, material.tokens, keep_tokens=within.recent)
    if not (split.older or split.recent) or (not split.older and previous is None):
        return None
    kept = {message.id for message in split.recent}
    directives = [
        prompt.text
        for prompt in material.prompts
        if prompt.id not in kept and not omission.is_excluded(prompt)
    ]
    return CompactionPlan(
        older=split.older,
        earlier="" if previous is None else previous.recent,
        previous_summary="" if previous is None else previous.summary,
        recent=preserved.render(split.recent),
        carried=preserved.preserve_facts(
            directives,
            material.todos,
            tokens_max=within.carried,
            # If the newest prompt is too large to be kept, its beginning is carried instead.
            latest_chars=None if split.recent else 2 * within.recent,
        ),
        summary_tokens=within.summary,
    )


def frees_enough(before: int, after: int) -> bool:
    """Whether an automatic compaction freed enough; otherwise the next would follow at once."""
    return 100 * after <= limits.COMPACTED_PERCENT_MAX * before


def _previous_checkpoint(history: Sequence[SessionMessage]) -> CompactionMessage | None:
    """The latest checkpoint, unless the user excluded it."""
    checkpoints = (m for m in reversed(history) if isinstance(m, CompactionMessage))
    latest = next(checkpoints, None)
    return None if latest is None or omission.is_excluded(latest) else latest


def _tokens(lowered: tuple[LLMMessage, ...], takes: MediaLimits | None) -> int:
    tokens = token_budget.estimate_messages(lowered)
    if takes is None:
        return tokens
    media = message_media.media_of(lowered)
    refused = sum(media_limits.is_refused(part.media_type, takes) for part in media)
    return tokens - refused * (limits.MEDIA_TOKENS - _NAME_TOKENS)
