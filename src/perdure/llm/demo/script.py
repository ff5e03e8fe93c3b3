"""What the demo model does about a prompt: its parts, in order, each by one task.

A prompt has several parts where `then` joins them, or where a sentence, a line, a comma or `and` is
followed by a verb that begins a task. Quoted text is never divided.
"""

import re
from collections.abc import Iterator
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.llm.demo import summary, tasks
from perdure.llm.demo.tasks import Part

PROMPT_CHARS_MAX: Final = 2_000
"""Only the beginning of a prompt is searched, to keep the patterns cheap."""
PARTS_MAX: Final = 20
SHOWN_CHARS_MAX: Final = 80

INTRODUCTION: Final = "This is the demo model: a fixed script, not an AI."

_VERBS: Final = (
    "add|append|ask|call|cat|change|copy|create|delete|display|do|execute|explain|find|finish|grep|in|list|make"
    "|move|open|print|put|read|remove|rename|replace|run|save|search|show|stop|use|which|write"
)
_BEGINS_A_TASK: Final = (
    rf"(?=(?:(?:please|now|also|finally|next|afterwards|again),? ){{0,3}}(?:{_VERBS})\b)"
)
_BOUNDARY: Final = lazy_pattern(
    r"`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)"
    r"|(?P<end>[,;.!]?\s(?:and )?(?:then|after (?:that|this)|afterwards)\b[,:]?\s"
    rf"|[,;.!?]\s(?:and )?{_BEGINS_A_TASK}"
    rf"|\s(?:and\s|\d\d?[.)] |[-*] ){_BEGINS_A_TASK}"
    rf"|\n{_BEGINS_A_TASK})",
    re.IGNORECASE,
)
"""Quoted text, or what stands between two parts of a prompt."""
_NAMES_A_FILE: Final = lazy_pattern(r"\s*in [\"'`]?[\w./-]{1,200}[\"'`]?,?", re.IGNORECASE)
"""The beginning of a part such as: in notes.txt, replace ..."""
_TAKES_A_FILE: Final = lazy_pattern(
    r"(?:add|append|change|cat|copy|delete|display|move|open|print|put|read|remove|rename|replace|save"
    r"|show|write)\b",
    re.IGNORECASE,
)
_IT: Final = lazy_pattern(
    r"`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)"
    r"|\b(?P<it>it|(?:that|this|the) file)\b(?! [\w-]+\.\w)",
    re.IGNORECASE,
)
"""Quoted text, or the words for a file that was named before."""
_ADDED: Final = lazy_pattern(r"[,;]?\s+(?:and|but)\s+(?P<wish>\w+\s+\w[\s\S]*)", re.IGNORECASE)
"""What a part asks for besides what was recognised."""
_OPENING: Final = lazy_pattern(
    r"(?:\d\d?[.)](?: |$)|[-*](?: |$))?"
    r"(?:(?:first|please|now|also|finally|next|afterwards|then|and),? )*",
    re.IGNORECASE,
)


def parts_of(prompt: str) -> tuple[Part, ...]:
    """What is done about each part of a prompt, in order."""
    if summary.is_asked(prompt):
        return (Part(closing=summary.summary_of(prompt)),)
    parts: list[Part] = []
    known = False
    path: str | None = None
    for request in divide(prompt[:PROMPT_CHARS_MAX]):
        found = tasks.find_part(_name_file(request, path))
        if found is None:
            parts.append(_unknown(request))
            continue
        part, rest = found
        known = True
        path = part.path or path
        parts.append(part)
        added = _ADDED.match(rest)
        if added is not None:
            parts.append(_unknown(added["wish"]))
    return tuple(parts) if known else (Part(closing=_CAPABILITIES),)


def _name_file(request: str, path: str | None) -> str:
    """The request with the file of an earlier part in place of `it`."""
    if path is None or not _TAKES_A_FILE.match(request):
        return request
    return _IT.sub(lambda found: found[0] if found["it"] is None else path, request)


def divide(prompt: str) -> list[str]:
    """The parts of a prompt, as they are written, without the words that join them."""
    pieces = (_OPENING.sub("", piece.strip(), count=1) for piece in _split(prompt))
    return [piece for piece in pieces if any(map(str.isalpha, piece))][:PARTS_MAX]


def _split(prompt: str) -> Iterator[str]:
    start = 0
    for match in _BOUNDARY.finditer(prompt):
        if match["end"] is not None and not _NAMES_A_FILE.fullmatch(prompt[start : match.start()]):
            yield prompt[start : match.start()]
            start = match.end()
    yield prompt[start:]


def _unknown(request: str) -> Part:
    shown = " ".join(request.split())
    shown = shown if len(shown) <= SHOWN_CHARS_MAX else f"{shown[:SHOWN_CHARS_MAX]}..."
    return Part(closing=f"It does not know how to do this part: {shown}")


_CAPABILITIES: Final = "\n".join(
    (
        "It does not understand prompts. It recognises these tasks and drives the real tools:",
        "",
        *(f"- {task.title}, for example: {task.example}" for task in tasks.TASKS),
        "",
        "Several of them can stand in one prompt: list the files, then read notes.txt.",
        "",
        "To work with a real model, name a provider in opencode.json and select its model; any",
        "server that speaks OpenAI Chat Completions will do, also one on this machine.",
    )
)
