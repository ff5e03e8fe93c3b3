"""A checkpoint that no model was needed for: the last resort when a summary cannot be had.

It understands nothing. It keeps the beginning of the previous summary and the newest lines of what
is condensed, and says that the rest was cut off and why.

Invariant: never more than `tokens_max`, and the same for the same conversation.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core import limits
from perdure.core.compaction import preserved, transcript
from perdure.core.request import token_budget
from perdure.schema.session.message import SessionMessage

_HEADING_TOKENS: Final = 20


def summary(
    messages: Sequence[SessionMessage], previous: str, *, reason: str, tokens_max: int
) -> str:
    """What can be kept of `messages`, which came after the `previous` summary."""
    opening = (
        "Older messages were cut off here without a summary, because none could be made"
        f" ({preserved.truncate(reason, limits.CUT_REASON_CHARS_MAX)}). Look again at files and"
        " results before relying on them."
    )
    left = tokens_max - token_budget.estimate(opening)
    blocks = [opening]
    if previous and left > 0:
        kept = preserved.truncate(previous, 2 * left)
        blocks.append(f"What was known before:\n{kept}")
        left -= token_budget.estimate(blocks[-1])
    newest = _newest(messages, left)
    if newest:
        blocks.append("The last that was said and done before the cut:\n" + "\n".join(newest))
    return "\n\n".join(blocks)


def _newest(messages: Sequence[SessionMessage], tokens_max: int) -> list[str]:
    lines: list[str] = []
    left = tokens_max - _HEADING_TOKENS
    for message in reversed(messages):
        text = transcript.text_of(message, result_chars=limits.PRUNED_RESULT_CHARS_MAX)
        left -= token_budget.estimate(text) + 1
        if left < 0:
            break
        lines.insert(0, text)
    return lines
