"""Which results a compaction prunes: the first step, which needs no model.

A pruned result is sent as a marker that names the file with its text. Old results go first; newer
ones, which the model may not have read yet, only if that is not enough, the oldest of them first.
Results that a provider executed itself are its own facts and stay.

Invariant: the same history, room and share give the same choice.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.core.request import history_to_llm, token_budget
from perdure.core.session import omission
from perdure.schema.ids import MessageID
from perdure.schema.session.message import SessionMessage, ToolPart
from perdure.schema.session.tool import CompletedState, ErrorState
from perdure.schema.value import Value

_MARKER_TOKENS: Final = 120
"""Upper estimate of a marker with its path."""


class Prunable(Value):
    """A result that may be pruned."""

    message_id: MessageID
    part: ToolPart
    saves: int
    """Tokens, at least."""


def choose_old(
    history: Sequence[SessionMessage], tokens: Sequence[int], *, keep_tokens: int
) -> tuple[Prunable, ...]:
    """All that may be pruned before the newest messages of `keep_tokens` together.

    `tokens`: the size of each message as it is sent.
    """
    start = first_kept(tokens, keep_tokens)
    return tuple(found for message in history[:start] for found in _prunable(message))


def choose_enough(
    history: Sequence[SessionMessage], tokens: Sequence[int], *, room: int, keep_tokens: int
) -> tuple[Prunable, ...]:
    """The results to prune for at most `room` tokens of conversation; empty if it cannot."""
    chosen = list(choose_old(history, tokens, keep_tokens=keep_tokens))
    excess = sum(tokens) - room - sum(found.saves for found in chosen)
    for message in history[first_kept(tokens, keep_tokens) :]:
        for found in _prunable(message):
            if excess <= 0:
                return tuple(chosen)
            chosen.append(found)
            excess -= found.saves
    return tuple(chosen) if excess <= 0 else ()


def first_kept(tokens: Sequence[int], keep_tokens: int) -> int:
    """The index of the first of the newest messages that fit into `keep_tokens` together."""
    start = len(tokens)
    while start > 0 and tokens[start - 1] <= keep_tokens:
        start -= 1
        keep_tokens -= tokens[start]
    return start


def _prunable(message: SessionMessage) -> Iterator[Prunable]:
    if omission.is_excluded(message):
        return
    # An id that repeats within a message stands for its last call.
    calls = {part.id: part for part in omission.calls_of(message)}
    for part in calls.values():
        saves = _size(part) - _MARKER_TOKENS
        if saves >= limits.PRUNED_SAVING_TOKENS_MIN and _may_be_pruned(part):
            yield Prunable(message.id, part, saves)


def _may_be_pruned(part: ToolPart) -> bool:
    hosted = part.provider is not UNSET and part.provider.executed
    is_sent = part.time.pruned is UNSET and part.time.excluded is UNSET
    return is_sent and not hosted and isinstance(part.state, CompletedState | ErrorState)


def _size(part: ToolPart) -> int:
    return token_budget.estimate_result(history_to_llm.result_of(part))
