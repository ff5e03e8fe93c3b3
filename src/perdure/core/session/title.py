"""A Session's names: its slug, and its title, a placeholder before the first promoted prompt."""

import hashlib
import re
from datetime import UTC, datetime
from typing import Final

from perdure.core import limits
from perdure.lazy_pattern import lazy_pattern

_PLACEHOLDER: Final = "New session - "
_ADJECTIVES: Final = (
    "amber", "bold", "brisk", "calm", "clear", "cosy", "crisp", "deep", "eager", "early", "fair",
    "fine", "firm", "fond", "fresh", "gentle", "glad", "golden", "grand", "green", "happy", "keen",
    "kind", "late", "light", "lucky", "mellow", "merry", "mild", "neat", "noble", "plain",
)  # fmt: skip
_NOUNS: Final = (
    "acorn", "anchor", "bay", "birch", "bridge", "brook", "cedar", "cliff", "cloud", "comet",
    "cove", "dawn", "delta", "ember", "fern", "field", "forest", "garden", "glade", "harbour",
    "heron", "hill", "island", "lake", "lantern", "maple", "meadow", "moon", "oak", "orchard",
    "otter", "river",
)  # fmt: skip


def make_slug(id: str) -> str:
    """A Session's slug: two plain words, the same for the same id."""
    first, second = hashlib.sha256(id.encode()).digest()[:2]
    return f"{_ADJECTIVES[first % len(_ADJECTIVES)]}-{_NOUNS[second % len(_NOUNS)]}"


def placeholder(created_millis: int) -> str:
    """`New session - <ISO time>`. Only titles of this form are replaced later."""
    moment = datetime.fromtimestamp(created_millis / 1000, UTC)
    # strftime would take as long as building the rest of a new Session's row.
    second = moment.replace(microsecond=0, tzinfo=None).isoformat()
    return f"{_PLACEHOLDER}{second}.{created_millis % 1000:03d}Z"


def is_placeholder(title: str) -> bool:
    return title.startswith(_PLACEHOLDER)


def from_prompt(text: str) -> str:
    """The first line with words, shortened at a word where possible; empty if there is none."""
    # Only the beginning is read: a prompt may have megabytes, and this runs inside the commit.
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
_THOUGHTS: Final = lazy_pattern(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_LABEL: Final = lazy_pattern(r"^\W*title\W*:\s*", re.IGNORECASE)
_AROUND: Final = " \t\"'`*_#“”«»„."


def request_text(prompt: str) -> str:
    """The request for a title. Only the beginning of the prompt is sent, to save tokens."""
    return f"{_ASKED}{prompt[: limits.TITLE_PROMPT_CHARS_MAX]}"


def from_answer(answer: str) -> str:
    """The title line without the decoration that models add; empty if there is none."""
    without_thoughts = _THOUGHTS.sub("", answer)
    lines = (_LABEL.sub("", line).strip(_AROUND) for line in without_thoughts.splitlines())
    return from_prompt(next((line for line in lines if line), ""))
