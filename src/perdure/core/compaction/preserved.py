"""What a compaction carries over word for word, whatever the model makes of the rest.

These are the user's own messages and the open items of the Session's list. Active instructions
need no carrying: the new epoch's baseline tells them anew. A long message is material rather than a
directive: its beginning is carried, the rest is for the summary.

Invariant: within its budget, and each short message as it was written or not at all.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core import limits
from perdure.core.compaction import transcript
from perdure.core.request import token_budget
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.todo import Todo, Todos
from perdure.schema.value import Value

_CLOSED: Final = frozenset({"completed", "cancelled"})


class PreservedFacts(Value, kw_only=True):
    directives: tuple[str, ...] = ()
    """What the user said, oldest first."""
    todos: Todos = ()

    @property
    def tokens(self) -> int:
        said = sum(map(token_budget.estimate, self.directives))
        return said + sum(map(_todo_tokens, self.todos))


def preserve_facts(
    said: Sequence[str], todos: Todos, *, tokens_max: int, latest_chars: int | None = None
) -> PreservedFacts:
    """The first message, then as many of the newest as fit, in the order they were said.

    `latest_chars`: the newest one is what is worked on, and may be this long.
    """
    open_todos = _open_todos(todos, tokens_max // 2)
    left = tokens_max - sum(map(_todo_tokens, open_todos))
    # At most half of what is left, so that one message never takes the place of all others.
    chars_max = min(limits.DIRECTIVE_CHARS_MAX, 2 * left)
    texts = dict(enumerate(truncate(text, chars_max) for text in said))
    chosen: dict[int, str] = {}
    if texts and latest_chars is not None:
        index, _ = texts.popitem()
        chosen[index] = truncate(said[index], max(latest_chars, chars_max))
    for index in _by_importance(len(texts)):
        left -= token_budget.estimate(texts[index])
        if left < 0:
            break
        chosen[index] = texts[index]
    return PreservedFacts(directives=tuple(chosen[i] for i in sorted(chosen)), todos=open_todos)


def truncate(text: str, chars_max: int) -> str:
    """The beginning of a text that is too long, and how much is missing."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n[{len(text) - chars_max} more characters left out]"


def _by_importance(count: int) -> list[int]:
    """What the whole Session is for was mostly said first; then the newest counts most."""
    return [0, *range(count - 1, 0, -1)] if count else []


def _open_todos(todos: Todos, tokens_max: int) -> Todos:
    kept: list[Todo] = []
    for todo in todos:
        if todo.status in _CLOSED:
            continue
        tokens_max -= _todo_tokens(todo)
        if tokens_max < 0:
            break
        kept.append(todo)
    return tuple(kept)


def _todo_tokens(todo: Todo) -> int:
    return token_budget.estimate(f"- [{todo.status}] {todo.content}\n")


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


def render(messages: Sequence[SessionMessage]) -> str:
    return "\n\n".join(map(transcript.text_of, messages))
