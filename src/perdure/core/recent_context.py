"""What of a conversation stays as it is after a compaction: its newest messages, whole.

An answer is one message with its calls and their results, so that no cut ever falls between a call
and its result. What does not stay is condensed; nothing is dropped here.
"""

from collections.abc import Sequence

from perdure.core import token_budget, transcript
from perdure.schema.message import SessionMessage
from perdure.schema.value import Value


class Split(Value):
    """Messages that are part of the talk, oldest first."""

    older: tuple[SessionMessage, ...]
    recent: tuple[SessionMessage, ...]


def split(history: Sequence[SessionMessage], *, keep_tokens: int) -> Split:
    """The newest messages that fit together are recent. One that is too large ends the walk."""
    said = [(message, text) for message in history if (text := transcript.text_of(message))]
    kept, start = 0, len(said)
    while start > 0:
        size = token_budget.estimate(said[start - 1][1])
        if kept + size > keep_tokens:
            break
        kept, start = kept + size, start - 1
    messages = tuple(message for message, _ in said)
    return Split(messages[:start], messages[start:])


def text_of(messages: Sequence[SessionMessage]) -> str:
    return "\n\n".join(map(transcript.text_of, messages))
