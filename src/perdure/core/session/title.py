"""A Session's title: a placeholder until the first prompt is promoted, then taken from its text."""

import re
from datetime import UTC, datetime
from typing import Final

from perdure.core import limits

_PLACEHOLDER: Final = "New session - "


def placeholder(created_millis: int) -> str:
    """`New session - <ISO time>`; recognised later, so that a chosen title is never replaced."""
    moment = datetime.fromtimestamp(created_millis / 1000, UTC)
    # Not by strftime, which costs as much as the rest of a new Session's row.
    second = moment.replace(microsecond=0, tzinfo=None).isoformat()
    return f"{_PLACEHOLDER}{second}.{created_millis % 1000:03d}Z"


def is_placeholder(title: str) -> bool:
    return title.startswith(_PLACEHOLDER)


def from_prompt(text: str) -> str:
    """The first line with words, shortened at a word where possible; empty if there is none."""
    # Only the beginning is looked at: a prompt may be megabytes, and this runs while it commits.
    beginning = text[: limits.TITLE_SCAN_CHARS_MAX]
    line = next((line for line in map(_clean, beginning.splitlines()) if line), "")
    if len(line) <= limits.TITLE_CHARS_MAX:
        return line
    cut = line[: limits.TITLE_CHARS_MAX - 1]
    words = cut.rpartition(" ")[0]
    return (words if len(words) > limits.TITLE_CHARS_MAX // 2 else cut) + "…"


def clean_title(text: str) -> str:
    """A title as a person gave it, on one line."""
    return _clean(text)


def fork_title(title: str) -> str:
    return title if is_placeholder(title) else f"{title} (fork)"


def _clean(line: str) -> str:
    # Control characters in a title would reach every terminal that lists sessions.
    return " ".join("".join(c if c.isprintable() else " " for c in line).split())


_ASKED: Final = "Name the conversation that begins with this message:\n\n"
_THOUGHTS: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_LABEL: Final = re.compile(r"^\W*title\W*:\s*", re.IGNORECASE)
_AROUND: Final = " \t\"'`*_#“”«»„."


def request_text(prompt: str) -> str:
    """The request. Only the beginning of a prompt counts; the rest would be paid for in vain."""
    return f"{_ASKED}{prompt[: limits.TITLE_PROMPT_CHARS_MAX]}"


def from_answer(answer: str) -> str:
    """One line without what models put around it; empty when nothing of it is a title."""
    said = _THOUGHTS.sub("", answer)
    lines = (_LABEL.sub("", line).strip(_AROUND) for line in said.splitlines())
    return from_prompt(next((line for line in lines if line), ""))
