"""What a compaction preserves verbatim: recent messages, user directives and open todos.

Active instructions are not carried: the new epoch's baseline contains them. Of a long message
only the beginning is carried, and the summary covers the rest.

Invariant: the result fits its budget, and each short message is carried whole or not at all.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core import limits
from perdure.core.compaction import pruning, transcript
from perdure.core.request import token_budget
from perdure.schema.session.message import SessionMessage
from perdure.schema.session.todo import Todo, Todos
from perdure.schema.value import Value

_CLOSED: Final = frozenset({"completed", "cancelled"})


class PreservedFacts(Value, kw_only=True):
    directives: tuple[str, ...] = ()
    """Messages of the user, oldest first."""
    todos: Todos = ()

    @property
    def tokens(self) -> int:
        tokens = sum(map(token_budget.estimate, self.directives))
        return tokens + sum(map(_todo_tokens, self.todos))


def preserve_facts(
    messages: Sequence[str], todos: Todos, *, tokens_max: int, latest_chars: int | None = None
) -> PreservedFacts:
    """The first message, then as many of the newest as fit, in chronological order.

    `latest_chars`: maximum length of the newest message, which is being worked on.
    """
    open_todos = _open_todos(todos, tokens_max // 2)
    tokens_left = tokens_max - sum(map(_todo_tokens, open_todos))
    # At most half of what is left, so that one message never displaces all others.
    chars_max = min(limits.DIRECTIVE_CHARS_MAX, 2 * tokens_left)
    texts = dict(enumerate(truncate(text, chars_max) for text in messages))
    chosen: dict[int, str] = {}
    if texts and latest_chars is not None:
        index, _ = texts.popitem()
        chosen[index] = truncate(messages[index], max(latest_chars, chars_max))
    for index in _by_importance(len(texts)):
        tokens_left -= token_budget.estimate(texts[index])
        if tokens_left < 0:
            break
        chosen[index] = texts[index]
    return PreservedFacts(directives=tuple(chosen[i] for i in sorted(chosen)), todos=open_todos)


def truncate(text: str, chars_max: int) -> str:
    """A text, cut to `chars_max`, with a note of how much is missing."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n[{len(text) - chars_max} more characters left out]"


def _by_importance(count: int) -> list[int]:
    """Indexes by importance: the first message usually states the goal, then the newest."""
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
    """Messages with text, oldest first."""

    older: tuple[SessionMessage, ...]
    recent: tuple[SessionMessage, ...]


def split(history: Sequence[SessionMessage], tokens: Sequence[int], *, keep_tokens: int) -> Split:
    """Split off the newest messages that fit into `keep_tokens` together, as they are sent.

    `tokens`: the size of each message as it is sent. Its text may be longer, by its labels, or
    shorter, because long results are cut.
    """
    messages: list[SessionMessage] = []
    sizes: list[int] = []
    for message, sent in zip(history, tokens, strict=True):
        if text := transcript.text_as_sent(message):
            messages.append(message)
            sizes.append(max(sent, token_budget.estimate(text)))
    start = pruning.first_kept(sizes, keep_tokens)
    return Split(tuple(messages[:start]), tuple(messages[start:]))


def render(messages: Sequence[SessionMessage]) -> str:
    return "\n\n".join(map(transcript.text_as_sent, messages))
