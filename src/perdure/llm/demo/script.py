"""What the demo model does about a prompt: its parts, in order, each by one task.

A prompt has several parts where `then` joins them, or where a sentence, a line, a comma or `and` is
followed by a verb that begins a task. Quoted text is never divided.
"""

import re
from collections.abc import Iterator
from typing import Final

from perdure.llm.demo import summary, tasks
from perdure.llm.demo.tasks import Part

PROMPT_CHARS_MAX: Final = 2_000
"""Only the beginning of a prompt is searched, to keep the patterns cheap."""
PARTS_MAX: Final = 20
SHOWN_CHARS_MAX: Final = 80

INTRODUCTION: Final = "This is the demo model: a fixed script, not an AI."

_VERBS: Final = (
    "add|append|ask|call|cat|change|create|delete|display|do|execute|explain|find|finish|grep|in|list|make"
    "|move|open|print|put|read|remove|rename|replace|run|save|search|show|stop|use|which|write"
)
_BEGINS_A_TASK: Final = (
    rf"(?=(?:(?:please|now|also|finally|next|afterwards|again),? ){{0,3}}(?:{_VERBS})\b)"
)
_BOUNDARY: Final = re.compile(
    r"`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)"
    r"|(?P<end>[,;.!]?\s(?:and )?then\b[,:]?\s"
    rf"|[,;.!?]\s(?:and )?{_BEGINS_A_TASK}"
    rf"|\s(?:and\s|\d\d?[.)] |[-*] ){_BEGINS_A_TASK}"
    rf"|\n{_BEGINS_A_TASK})",
    re.IGNORECASE,
)
"""Quoted text, or what stands between two parts of a prompt."""
_NAMES_A_FILE: Final = re.compile(r"\s*in [\"'`]?[\w./-]{1,200}[\"'`]?,?", re.IGNORECASE)
"""The beginning of a part such as: in notes.txt, replace ..."""
_OPENING: Final = re.compile(
    r"(?:\d\d?[.)](?: |$)|[-*](?: |$))?"
    r"(?:(?:first|please|now|also|finally|next|afterwards|then|and),? )*",
    re.IGNORECASE,
)


def parts_of(prompt: str) -> tuple[Part, ...]:
    """What is done about each part of a prompt, in order."""
    if summary.is_asked(prompt):
        return (Part(closing=summary.summary_of(prompt)),)
    requests = divide(prompt[:PROMPT_CHARS_MAX])
    found = [tasks.find_part(request) for request in requests]
    if all(part is None for part in found):
        return (Part(closing=_CAPABILITIES),)
    return tuple(
        _unknown(request) if part is None else part
        for request, part in zip(requests, found, strict=True)
    )


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
