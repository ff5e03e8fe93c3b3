"""A conversation that is to be condensed, as text that a model can read: pruned, then in parts.

Old tool results are the first to go, and always the same way. The stored history is never edited.
"""

from collections.abc import Sequence

from perdure.core import limits
from perdure.core.compaction import transcript
from perdure.core.request import token_budget
from perdure.schema.session.message import SessionMessage


def split_conversation(
    messages: Sequence[SessionMessage], earlier: str, *, tokens_max: int | None
) -> list[str]:
    """The conversation in as few parts as a reader of `tokens_max` needs, oldest first.

    `earlier` is text that came before. When there is more than may be read at all, the oldest parts
    are left out. None: nobody knows how much the reader can take, so it is given all at once.
    """
    texts = _texts(messages, earlier, limits.TRANSCRIPT_RESULT_CHARS_MAX)
    if tokens_max is None:
        return ["\n\n".join(texts)]
    if _size(texts) > tokens_max:
        texts = _texts(messages, earlier, limits.PRUNED_RESULT_CHARS_MAX)
    return join_parts(texts, tokens_max=tokens_max)[-limits.SUMMARY_PARTS_MAX :]


def join_parts(texts: Sequence[str], *, tokens_max: int) -> list[str]:
    """Joined as far as they fit; a text that is too large alone is divided."""
    found: list[str] = []
    current: list[str] = []
    for piece in (piece for text in texts for piece in _pieces(text, tokens_max)):
        if current and _size([*current, piece]) > tokens_max:
            found.append("\n\n".join(current))
            current = []
        current.append(piece)
    return [*found, "\n\n".join(current)] if current else found


def _texts(messages: Sequence[SessionMessage], earlier: str, result_chars: int) -> list[str]:
    said = (transcript.text_of(message, result_chars=result_chars) for message in messages)
    return [text for text in (earlier, *said) if text]


def _size(texts: Sequence[str]) -> int:
    return sum(token_budget.estimate(text) + 1 for text in texts)


def _pieces(text: str, tokens_max: int) -> list[str]:
    if token_budget.estimate(text) < tokens_max:
        return [text]
    # Twice as many units as characters at worst.
    chars = max(1, 2 * (tokens_max - 1))
    return [text[start : start + chars] for start in range(0, len(text), chars)]
